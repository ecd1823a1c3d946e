// The folders under src/ are the architecture: reads every #include there and fails on one that
// points upward or sideways.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;

struct Folder {
  std::string_view name;
  int row;  // may include folders of smaller rows, and itself
  std::string_view
      unknown;  // folders of smaller rows that it must not know all the same, blank separated
};

constexpr std::array kFolders{
    Folder{"core", 0, ""},
    Folder{"cfg", 1, ""},
    Folder{"device", 1, ""},
    Folder{"graph", 1, ""},
    Folder{"ops", 2, "cfg"},
    Folder{"plan", 2, "cfg device"},  // it takes a DeviceSpec (core), so that every pass is tested
                                      // without a device
    Folder{"layers", 3, "device plan"},
    Folder{"exec", 4, "cfg"},  // holds Model: a network compiled and ready to run
    Folder{"data", 4, "cfg device graph ops plan layers"},  // knows no networks
    Folder{"io", 5, "device"},
    Folder{"eval", 5, ""},
    Folder{"draw", 5, "cfg device graph ops plan layers exec data"},  // plain pixels and numbers
    Folder{"api", 6, "draw"},  // what include/lantern/ declares; knows no training
    Folder{"train", 6, ""},
    Folder{"cli", 7, ""},
};

const Folder* find_folder(std::string_view name) {
  const auto found = std::find_if(kFolders.begin(), kFolders.end(),
                                  [name](const Folder& f) { return f.name == name; });
  return found == kFolders.end() ? nullptr : &*found;
}

struct Include {
  std::string path;
  bool quoted = true;
  int line = 0;
};

// The #include directives of a source text, comments and macros left alone (a directive starts its
// line).
std::vector<Include> includes_of(const std::string& text) {
  std::vector<Include> found;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::string_view rest = line;
    const auto skip_blanks = [&rest] {
      rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    };
    const auto take = [&rest](std::string_view word) {
      const bool here = rest.substr(0, word.size()) == word;
      if (here) rest.remove_prefix(word.size());
      return here;
    };
    skip_blanks();
    if (!take("#")) continue;
    skip_blanks();
    if (!take("include")) continue;
    skip_blanks();
    if (rest.empty() || (rest[0] != '"' && rest[0] != '<')) continue;
    const bool quoted = rest[0] == '"';
    const std::size_t end = rest.find(quoted ? '"' : '>', 1);
    if (end != std::string_view::npos)
      found.push_back({std::string(rest.substr(1, end - 1)), quoted, number});
  }
  return found;
}

bool knows(std::string_view words, std::string_view word) {
  return fmt::format(" {} ", words).find(fmt::format(" {} ", word)) != std::string::npos;
}

// Why the folder must not have this include; nothing when it may.
std::optional<std::string> complaint(const Folder& from, const Include& include) {
  const std::string top = include.path.substr(0, include.path.find('/'));
  const Folder* to = include.path.find('/') == std::string::npos ? nullptr : find_folder(top);
  if (!include.quoted) {
    if (to != nullptr)
      return fmt::format("<{}> is our own header: write it in quotes", include.path);
    return {};
  }
  if (to == nullptr) {
    if (top == "lantern") return {};  // the public interface, include/lantern/
    return fmt::format("\"{}\" is not written relative to src/", include.path);
  }
  if (to->name == from.name) return {};
  if (to->row >= from.row) {
    return fmt::format("\"{}\": {} does not stand above {}", include.path, to->name, from.name);
  }
  if (knows(from.unknown, to->name)) {
    return fmt::format("\"{}\": {} must not know {}", include.path, from.name, to->name);
  }
  return {};
}

std::vector<std::string> complaints_about(std::string_view folder, const std::string& text) {
  std::vector<std::string> all;
  for (const Include& include : includes_of(text)) {
    if (const auto what = complaint(*find_folder(folder), include)) {
      all.push_back(fmt::format("{}: {}", include.line, *what));
    }
  }
  return all;
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool is_source(const fs::path& path) {
  static constexpr std::array<std::string_view, 5> kExtensions{".hpp", ".cpp", ".h", ".cu", ".cuh"};
  const std::string extension = path.extension().string();
  return std::find(kExtensions.begin(), kExtensions.end(), extension) != kExtensions.end();
}

const fs::path kRoot = LANTERN_SOURCE_DIR;

TEST(Layering, NoFolderIncludesUpwardOrSideways) {
  int files = 0;
  for (const Folder& folder : kFolders) {
    ASSERT_TRUE(fs::is_directory(kRoot / "src" / folder.name)) << folder.name;
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / "src" / folder.name)) {
      if (!entry.is_regular_file() || !is_source(entry.path())) continue;
      ++files;
      for (const std::string& what : complaints_about(folder.name, read(entry.path()))) {
        ADD_FAILURE() << fs::relative(entry.path(), kRoot).string() << ":" << what;
      }
    }
  }
  EXPECT_GT(files, 20);
}

TEST(Layering, EveryFolderOfTheSourceTreeIsInTheTable) {
  for (const auto& entry : fs::directory_iterator(kRoot / "src")) {
    if (!entry.is_directory()) continue;
    EXPECT_NE(find_folder(entry.path().filename().string()), nullptr) << entry.path().filename();
  }
}

TEST(Layering, EveryIncludeOfOursNamesAFileThatIsThere) {
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "src")) {
    if (!entry.is_regular_file() || !is_source(entry.path())) continue;
    for (const Include& include : includes_of(read(entry.path()))) {
      if (!include.quoted) continue;
      EXPECT_TRUE(fs::exists(kRoot / "src" / include.path) ||
                  fs::exists(kRoot / "include" / include.path))
          << fs::relative(entry.path(), kRoot).string() << ":" << include.line << ": \""
          << include.path << "\"";
    }
  }
}

TEST(Layering, ThePublicInterfaceNamesNoLibraryOfADevice) {
  if (!fs::exists(kRoot / "include")) GTEST_SKIP() << "there is no public interface yet";
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "include")) {
    if (!entry.is_regular_file()) continue;
    for (const Include& include : includes_of(read(entry.path()))) {
      for (const std::string_view word : {"dnnl", "cuda", "cudnn", "opencv", "cairo"}) {
        EXPECT_EQ(include.path.find(word), std::string::npos)
            << entry.path() << ":" << include.line;
      }
    }
  }
}

TEST(Layering, HeadersBeginWithTheirGuard) {
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "src")) {
    if (entry.path().extension() != ".hpp") continue;
    EXPECT_NE(read(entry.path()).find("#pragma once"), std::string::npos)
        << fs::relative(entry.path(), kRoot).string();
  }
}

TEST(Dependencies, EveryPackageHasItsLineInTheDocs) {
  std::istringstream packages(read(kRoot / "scripts" / "packages.txt") +
                              read(kRoot / "scripts" / "oracles.txt"));
  const std::string docs = read(kRoot / "docs" / "dependencies.md");
  int count = 0;
  for (std::string package; std::getline(packages, package);) {
    if (package.empty() || package[0] == '#') continue;
    ++count;
    EXPECT_NE(docs.find(fmt::format("\n| {} |", package)), std::string::npos) << package;
  }
  EXPECT_GT(count, 10);
}

TEST(LayeringRules, TellUpwardFromDownward) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(complaints_about("plan", "#include \"core/types.hpp\"\n#include \"graph/graph.hpp\"\n"),
            Lines{});
  EXPECT_EQ(complaints_about("plan", "#include <vector>\n#include \"plan/program.hpp\"\n"),
            Lines{});
  EXPECT_EQ(complaints_about("plan", "\n#include \"ops/select.hpp\"\n"),
            Lines{"2: \"ops/select.hpp\": ops does not stand above plan"});
  EXPECT_EQ(complaints_about("core", "  #  include \"cli/main.hpp\""),
            Lines{"1: \"cli/main.hpp\": cli does not stand above core"});
  EXPECT_EQ(complaints_about("device", "#include \"graph/graph.hpp\""),
            Lines{"1: \"graph/graph.hpp\": graph does not stand above device"});
  EXPECT_EQ(complaints_about("plan", "#include \"device/device.hpp\""),
            Lines{"1: \"device/device.hpp\": plan must not know device"});
  EXPECT_EQ(complaints_about("eval", "#include <core/error.hpp>"),
            Lines{"1: <core/error.hpp> is our own header: write it in quotes"});
  EXPECT_EQ(complaints_about("eval", "#include \"nms.hpp\""),
            Lines{"1: \"nms.hpp\" is not written relative to src/"});
  EXPECT_EQ(complaints_about("core", "// #include \"cli/main.hpp\"\n"), Lines{});
}

}  // namespace
