#include <set>

#include "cli/program.hpp"

// `dump --format` and `export onnx`: what the program itself does; that the ONNX files are right is
// told by tests/onnx.
namespace lantern::cli {
namespace {

std::size_t lines_with(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++found;
  }
  return found;
}

TEST(DumpFormats, TellTheSameOps) {
  const WorkFolder folder("39-no-display");
  for (const std::string stage : {"graph", "training"}) {
    const std::string dump = "dump --stage " + stage + " net.cfg --format ";
    const nlohmann::json json = parse_json(folder.run(dump + "json").out);
    const std::string text = folder.run(dump + "text").out;
    const std::size_t ops = json["ops"].size();
    EXPECT_EQ(ops, lines_with(text, " layer "));
    EXPECT_GT(ops, 5U);
    std::set<std::string> tensors;
    std::size_t inputs = 0;
    for (const auto& tensor : json["tensors"]) {
      tensors.insert(tensor["name"]);
      inputs += tensor["role"] == "input" ? 1 : 0;
      EXPECT_FALSE(tensor["shape"].empty());
    }
    for (const auto& op : json["ops"]) {
      for (const auto& name : op["inputs"]) EXPECT_TRUE(tensors.contains(name)) << name;
      for (const auto& name : op["outputs"]) EXPECT_TRUE(tensors.contains(name)) << name;
    }
    const std::string dot = folder.run(dump + "dot").out;
    EXPECT_EQ(lines_with(dot, " [label="), ops + inputs);
    const std::string svg = folder.run(dump + "svg").out;
    EXPECT_EQ(lines_with(svg, "<rect x="), ops + inputs);
    EXPECT_EQ(lines_with(svg, "<path "), lines_with(dot, " -> "));
    EXPECT_GE(lines_with(dot, " -> "), ops - 1);
  }
}

TEST(DumpFormats, AreForGraphs) {
  const WorkFolder folder("39-no-display");
  const Outcome wrong = folder.run("dump --format dott net.cfg");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(wrong.says("did you mean dot?")) << wrong.err;
  const Outcome other = folder.run("dump --stage program --format svg net.cfg");
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(other.says("program is text")) << other.err;
}

const std::string kFace = LANTERN_TEST_DATA "/weights/yoloface-50k/yoloface-50k";

TEST(ExportOnnx, WritesBesideTheUser) {
  const WorkFolder folder;
  const Outcome done = folder.run("export onnx " + kFace + ".cfg " + kFace + ".weights");
  EXPECT_EQ(done.code, 0) << done.err;
  const std::string raw = slurp(folder / "yoloface-50k.onnx");
  EXPECT_GT(raw.size(), 50000U);
  EXPECT_NE(raw.find("BatchNormalization"), std::string::npos);
  EXPECT_NE(raw.find("head0"), std::string::npos);
  put(folder / "face.names", "face\n");
  const Outcome folded =
      folder.run("export onnx " + kFace + ".cfg " + kFace +
                 ".weights -o x.onnx --heads decoded --fold-bn --names face.names");
  EXPECT_EQ(folded.code, 0) << folded.err;
  const std::string decoded = slurp(folder / "x.onnx");
  EXPECT_EQ(decoded.find("BatchNormalization"), std::string::npos);
  EXPECT_NE(decoded.find("scores"), std::string::npos);
}

TEST(ExportOnnx, RefusesWhatItCannotDo) {
  const WorkFolder folder;
  const std::string words = "export onnx " + kFace + ".cfg " + kFace + ".weights ";
  const Outcome heads = folder.run(words + "--heads rew");
  EXPECT_EQ(heads.code, 2);
  EXPECT_TRUE(heads.says("did you mean raw?")) << heads.err;
  put(folder / "two.names", "a\nb\n");
  const Outcome names = folder.run(words + "--names two.names");
  EXPECT_EQ(names.code, 3);
  EXPECT_TRUE(names.says("there are 2, the network has 1 classes")) << names.err;
  EXPECT_EQ(folder.run(words + "-o nowhere/x.onnx").code, 4);
  EXPECT_EQ(folder.run("export onnx " + kFace + ".cfg missing.weights").code, 3);
  EXPECT_EQ(folder.run("export coreml a b").code, 2);
  EXPECT_FALSE(folder.has("yoloface-50k.onnx"));
}

}  // namespace
}  // namespace lantern::cli
