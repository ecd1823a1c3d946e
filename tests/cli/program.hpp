#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "gtest/gtest.h"

namespace lantern::cli {

inline std::string slurp(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void put(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// A strict parser: trailing text, trailing commas and wrong UTF-8 are failures.
inline nlohmann::json parse_json(const std::string& text) {
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << text;
  return json;
}

struct Outcome {
  int code = -1;
  std::string out, err;
  bool says(const std::string& text) const { return err.find(text) != std::string::npos; }
  bool prints(const std::string& text) const { return out.find(text) != std::string::npos; }
};

/// A working directory that goes away, empty or a copy of tests/data/cases/<name>.
class WorkFolder {
 public:
  explicit WorkFolder(const std::string& case_name = {}) {
    namespace fs = std::filesystem;
    static int count = 0;
    path_ = fs::temp_directory_path() /
            ("lantern_cli_" + std::to_string(getpid()) + "_" + std::to_string(count++));
    fs::create_directories(path_);
    if (!case_name.empty()) {
      fs::copy(fs::path(LANTERN_TEST_DATA) / "cases" / case_name, path_,
               fs::copy_options::recursive);
      fs::create_directories(path_ / "backup");
    }
  }
  ~WorkFolder() {
    std::error_code code;
    std::filesystem::remove_all(path_, code);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  bool has(const std::string& name) const { return std::filesystem::exists(path_ / name); }

  /// Runs the program here; `args` as typed into a shell, `input` on its standard input. No
  /// display, no colours.
  Outcome run(const std::string& args, const std::string& input = {},
              const std::string& program = LANTERN_PROGRAM) const {
    const auto stem = path_.string();
    put(stem + ".in", input);
    const std::string command =
        "cd '" + stem + "' && env -u DISPLAY -u WAYLAND_DISPLAY OMP_WAIT_POLICY=passive '" +
        program + "' " + args + " < '" + stem + ".in' > '" + stem + ".out' 2> '" + stem + ".err'";
    const int status = std::system(command.c_str());
    Outcome outcome{WIFEXITED(status) ? WEXITSTATUS(status) : -1, slurp(stem + ".out"),
                    slurp(stem + ".err")};
    for (const char* ending : {".in", ".out", ".err"}) std::filesystem::remove(stem + ending);
    return outcome;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace lantern::cli
