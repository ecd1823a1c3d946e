#include "cli/verbs.hpp"

#include <algorithm>
#include <array>

#include "cli/classifier.hpp"
#include "cli/detector.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/text.hpp"

namespace lantern::cli {

namespace {

constexpr std::array kCommonFlags{
    Flag{.name = "help", .doc = "this text"},
    Flag{.name = "quiet", .doc = "no notices and no progress, only results, warnings and errors"},
    Flag{.name = "device",
         .kind = ValueKind::kText,
         .value = "cpu",
         .otherwise = "cpu",
         .doc = "where to compute"},
    Flag{.name = "i",
         .kind = ValueKind::kText,
         .value = "-1|cpu",
         .otherwise = "cpu",
         .doc = "Darknet's way to name the device"},
    Flag{.name = "cuda_debug_sync", .used_by = "gpu"},
};

const std::vector<Verb>& verb_table() {
  static const std::vector<Verb> table{
      {"detector train", "<data> <cfg> [weights]", 2, 3, "Trains a detector.",
       "lantern detector train obj.data net.cfg net.conv.29 -map -dont_show", detector_flags(),
       run_detector_train},
      {"detector test", "<data> <cfg> <weights> [image|folder|pattern]", 3, 4,
       "Detects objects in images, else in those whose paths come on standard input.",
       "lantern detector test obj.data net.cfg net.weights -ext_output -out result.json < list.txt",
       detector_flags(), run_detector_test},
      {"detector map", "<data> <cfg> <weights>", 3, 3,
       "Mean average precision on the validation list.",
       "lantern detector map obj.data net.cfg net.weights -iou_thresh 0.5:0.95", detector_flags(),
       run_detector_map},
      {"detector valid", "<data> <cfg> <weights>", 3, 3,
       "Writes the detections of the validation list into result files.",
       "lantern detector valid obj.data net.cfg net.weights", detector_flags(), run_detector_valid},
      {"detector recall", "<data> <cfg> <weights>", 3, 3,
       "Share of the true boxes that are found, whatever their class.",
       "lantern detector recall obj.data net.cfg net.weights", detector_flags(),
       run_detector_recall},
      {"detector calc_anchors", "<data> [cfg]", 1, 2,
       "Anchors that fit the boxes of the training list.",
       "lantern detector calc_anchors obj.data -num_of_clusters 9 -width 416 -height 416",
       detector_flags(), run_detector_calc_anchors},
      {"detect", "<cfg> <weights> [image|folder|pattern]", 2, 3,
       "Short for `detector test cfg/coco.data ...`.",
       "lantern detect cfg/yolov4.cfg yolov4.weights data/dog.jpg -thresh .3", detect_flags(),
       run_detect},
      {"classifier train", "<data> <cfg> [weights]", 2, 3, "Trains a classifier.",
       "lantern classifier train cls.data net.cfg -topk -dont_show", classifier_flags(),
       run_classifier_train},
      {"classifier predict", "<data> <cfg> <weights> [image|folder|pattern]", 3, 4,
       "Classes of images, else of those whose paths come on standard input.",
       "lantern classifier predict cls.data net.cfg net.weights dog.jpg -t 5", classifier_flags(),
       run_classifier_predict},
      {"classifier valid", "<data> <cfg> <weights>", 3, 3,
       "Share of right answers on the validation list; the middle of each image, as predict.",
       "lantern classifier valid cls.data net.cfg net.weights --json", classifier_flags(),
       run_classifier_valid},
      {"classifier valid10", "<data> <cfg> <weights>", 3, 3,
       "The same over five windows of each image, plain and mirrored.",
       "lantern classifier valid10 cls.data net.cfg net.weights", classifier_flags(),
       run_classifier_valid10},
      {"classifier validcrop", "<data> <cfg> <weights>", 3, 3,
       "The same over whole images, stretched to the size of the network.",
       "lantern classifier validcrop cls.data net.cfg net.weights -batch 16", classifier_flags(),
       run_classifier_validcrop},
      {"classify", "<cfg> <weights> [image|folder|pattern]", 2, 3,
       "Short for `classifier predict cfg/imagenet1k.data ...`.",
       "lantern classify cfg/darknet53.cfg darknet53.weights data/dog.jpg", classify_flags(),
       run_classify},
      {"partial",
       "<cfg> <weights> <out> <n>",
       4,
       4,
       "Writes the first n layers of a weights file, as a start for training.",
       "lantern partial yolov4-tiny.cfg yolov4-tiny.weights yolov4-tiny.conv.29 29",
       {},
       run_partial},
      {"ops",
       "<cfg>",
       1,
       1,
       "Floating point operations of an image, layer by layer.",
       "lantern ops yolov4-tiny.cfg",
       {},
       run_ops},
      {"average",
       "<cfg> <out> <weights> <weights>...",
       4,
       1000,
       "Mean of weights files of one network, for every kind of layer.",
       "lantern average net.cfg mean.weights net_8000.weights net_9000.weights net_10000.weights",
       {},
       run_average},
      {"denormalize",
       "<cfg> <weights> <out> [cfg out]",
       3,
       4,
       "Folds batch norms into weights and biases; writes weights and the cfg that fits them.",
       "lantern denormalize net.cfg net.weights plain.weights",
       {},
       run_denormalize},
      {"speed", "<cfg> [tics=1000]", 1, 2,
       "Time of a forward pass with random weights: the median of so many.",
       "lantern speed yolov4-tiny.cfg 100 -batch 4", speed_flags(), run_speed},
      {"bench", "<cfg> [weights]", 1, 2,
       "Speed and memory with synthetic images, by size, number of images and layer.",
       "lantern bench yolov4-tiny.cfg --size 320,416,512 --batch 1,4 --json=bench.json",
       bench_flags(), run_bench},
      {"models",
       "<cfg|folder>...",
       1,
       1000,
       "Markdown table of networks: layers, parameters, operations, memory, status.",
       "lantern models cfg > models.md",
       {},
       run_models},
      {"dump", "<cfg>", 1, 1, "Text form of a stage of compilation.",
       "lantern dump --stage program yolov4-tiny.cfg", dump_flags(), run_dump},
      {"export onnx", "<cfg> <weights>", 2, 2, "Writes a network as an ONNX model, opset 13.",
       "lantern export onnx yolov4-tiny.cfg yolov4-tiny.weights -o yolov4-tiny.onnx --heads "
       "decoded",
       export_flags(), run_export_onnx},
      {"plan", "<cfg>", 0, 1,
       "Which mini-batches fit into a memory, and what they cost in time, before the run.",
       "lantern plan yolov4-tiny.cfg --device rtx2070 --memory 4G --mini-batch 16,32,64",
       plan_flags(), run_plan},
      {"help", "[cfg|compatibility|SECTION|VERB]", 0, 2,
       "Verbs, flags, cfg sections and their keys.", "lantern help maxpool", help_flags(),
       run_help},
      {"version",
       "",
       0,
       0,
       "Version of the program and what it was built for.",
       "lantern version",
       {},
       run_version},
  };
  return table;
}

constexpr std::string_view kNotYet = "is not part of this version";
constexpr std::string_view kNever = "of Darknet is not part of this program";

// A verb of Darknet or of a later version that this program does not have.
struct AbsentVerb {
  std::string_view name;
  std::string_view reason;
};

constexpr std::array kAbsentVerbs{
    AbsentVerb{"detector demo", kNotYet},
    AbsentVerb{"detector draw", kNever},
    AbsentVerb{"classifier demo", kNotYet},
    AbsentVerb{"classifier validmulti", kNotYet},
    AbsentVerb{"classifier validfull", kNotYet},
    AbsentVerb{"classifier test", kNotYet},
    AbsentVerb{"classifier label", kNotYet},
    AbsentVerb{"classifier try", kNotYet},
    AbsentVerb{"classifier gun", kNever},
    AbsentVerb{"classifier threat", kNever},
    AbsentVerb{"normalize", kNotYet},
    AbsentVerb{"reset", kNotYet},
    AbsentVerb{"rescale", kNotYet},
    AbsentVerb{"rgbgr", kNotYet},
    AbsentVerb{"statistics", kNotYet},
    AbsentVerb{"visualize", kNotYet},
    AbsentVerb{"imtest", kNotYet},
    AbsentVerb{"check", kNotYet},
    AbsentVerb{"oneoff", kNever},
    AbsentVerb{"3d", kNever},
    AbsentVerb{"rnn", kNever},
    AbsentVerb{"yolo", kNever},
    AbsentVerb{"coco", kNever},
    AbsentVerb{"nightmare", kNever},
    AbsentVerb{"art", kNever},
    AbsentVerb{"go", kNever},
    AbsentVerb{"captcha", kNever},
    AbsentVerb{"writing", kNever},
    AbsentVerb{"dice", kNever},
    AbsentVerb{"cifar", kNever},
    AbsentVerb{"tag", kNever},
    AbsentVerb{"super", kNever},
    AbsentVerb{"voxel", kNever},
    AbsentVerb{"compare", kNever},
    AbsentVerb{"vid", kNever},
};

// Users paste commands from files with foreign line ends (as Darknet, which strips the same).
void clean(std::vector<std::string>& args) {
  for (std::string& arg : args) {
    std::erase_if(arg, [](char c) { return c == '\r' || c == '\n' || c == '\t'; });
  }
}

void refuse_if_absent(std::string_view name) {
  for (const AbsentVerb& absent : kAbsentVerbs) {
    if (absent.name == name) {
      throw Error(ErrorCode::kUsage, "", "verb '{}' {}; `lantern help` lists those that are", name,
                  absent.reason);
    }
  }
}

[[noreturn]] void unknown_verb(std::string_view family, std::string_view name,
                               const std::vector<std::string_view>& candidates) {
  const auto near = nearest(name, candidates);
  const std::string hint = near             ? fmt::format("; did you mean '{}'?", *near)
                           : family.empty() ? std::string("; `lantern help` lists them")
                                            : fmt::format("; want {}", fmt::join(candidates, ", "));
  throw Error(ErrorCode::kUsage, "", "unknown {}{}verb '{}'{}", family, family.empty() ? "" : " ",
              name, hint);
}

bool is_family(std::string_view word) {
  return std::ranges::any_of(verbs(), [&](const Verb& verb) { return verb.family() == word; });
}

// Position of the verb: the first word, or behind leading flags (`-i -1 detector ...`).
std::size_t find_verb(const std::vector<std::string>& args) {
  if (!args.front().starts_with('-')) return 0;
  const auto found = std::ranges::find_if(args, is_family);
  if (found == args.end()) {
    throw Error(ErrorCode::kUsage, "", "'{}' is no verb; `lantern help` lists them", args.front());
  }
  return static_cast<std::size_t>(found - args.begin());
}

void check_device(const Verb& verb, const Arguments& arguments) {
  const std::string device = arguments.text("device");
  const std::string index = arguments.text("i");
  const bool computes = verb.run != run_plan;  // plans need no device
  if (device != "cpu" && computes) {
    throw Error(ErrorCode::kDevice, "",
                "-device {}: this build computes on the CPU only (-device cpu)", device);
  }
  if (index != "cpu" && index != "-1") {
    throw Error(ErrorCode::kDevice, "",
                "-i {}: this build computes on the CPU only; leave -i out or write -i -1", index);
  }
}

const Verb& find_subverb(std::string_view family, const Arguments& arguments) {
  std::vector<const Verb*> members;
  std::vector<std::string_view> names;
  for (const Verb& verb : verbs()) {
    if (verb.family() != family) continue;
    if (verb.subverb().empty()) return verb;
    members.push_back(&verb);
    names.push_back(verb.subverb());
  }
  if (arguments.positionals.empty()) {
    throw Error(ErrorCode::kUsage, "", "usage: lantern {} <{}> ...", family, fmt::join(names, "|"));
  }
  const std::string& name = arguments.positionals.front();
  for (const Verb* verb : members) {
    // As in flags; Darknet 5 writes calcanchors.
    if (plain_spelling(verb->subverb()) == plain_spelling(name)) return *verb;
  }
  refuse_if_absent(fmt::format("{} {}", family, name));
  unknown_verb(family, name, names);
}

}  // namespace

std::span<const Verb> verbs() { return verb_table(); }
std::span<const Flag> common_flags() { return kCommonFlags; }

int run_command(std::vector<std::string> args, Terminal& terminal) {
  clean(args);
  if (args.empty() || args.front() == "--help" || args.front() == "-help" || args.front() == "-h") {
    terminal.print(program_help());
    return 0;
  }
  if (args.front() == "--version" || args.front() == "-version") args.front() = "version";
  const std::size_t place = find_verb(args);
  const std::string family = args[place];
  args.erase(args.begin() + static_cast<std::ptrdiff_t>(place));
  if (!is_family(family)) {
    refuse_if_absent(family);
    std::vector<std::string_view> names;
    for (const Verb& verb : verbs()) names.push_back(verb.family());
    unknown_verb({}, family, names);
  }
  std::span<const Flag> flags;
  for (const Verb& verb : verbs()) {
    if (verb.family() == family) flags = verb.flags;
  }
  Arguments arguments = parse_arguments({flags, kCommonFlags}, family, args);
  if (arguments.has("help") && arguments.positionals.empty() && family != "help") {
    return print_help(std::vector{family}, false, terminal);
  }
  const Verb& verb = find_subverb(family, arguments);
  if (!verb.subverb().empty()) arguments.positionals.erase(arguments.positionals.begin());
  if (arguments.has("help")) {
    terminal.print(verb_help(verb));
    return 0;
  }
  if (arguments.has("quiet")) {
    terminal.set_quiet(true);
    log::set_level(log::Level::kWarning);
  }
  for (const std::string& warning : check_use(arguments, verb.name, verb.subverb())) {
    terminal.warning(warning);
  }
  const auto count = static_cast<int>(arguments.positionals.size());
  if (count < verb.least || count > verb.most) {
    throw Error(ErrorCode::kUsage, "", "too {} arguments; usage: lantern {} {} [flags]",
                count < verb.least ? "few" : "many", verb.name, verb.usage);
  }
  check_device(verb, arguments);
  return verb.run(arguments, terminal);
}

}  // namespace lantern::cli
