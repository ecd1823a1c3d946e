#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cli/program.hpp"

namespace lantern::cli {

/// The program, running in a folder beside the test; both of its streams go into out.txt there.
class Background {
 public:
  Background(const WorkFolder& folder, std::vector<std::string> args) : folder_(folder) {
    put(folder / "out.txt", "");
    child_ = fork();
    EXPECT_GE(child_, 0);
    if (child_ != 0) return;
    if (chdir(folder.path().c_str()) != 0) _exit(99);
    const int out = open("out.txt", O_WRONLY | O_APPEND);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    signal(SIGHUP, SIG_DFL);
    setenv("OMP_WAIT_POLICY", "passive", 1);
    args.insert(args.begin(), LANTERN_PROGRAM);
    std::vector<char*> raw;
    for (std::string& arg : args) raw.push_back(arg.data());
    raw.push_back(nullptr);
    execv(LANTERN_PROGRAM, raw.data());
    _exit(98);
  }
  ~Background() {
    if (!status_) end_with(SIGKILL);
  }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  std::string output() const { return slurp(folder_ / "out.txt"); }

  /// Waits until it has said that, half a minute at most or until it has ended.
  void wait_for(const std::string& text) {
    for (int i = 0; i < 3000 && output().find(text) == std::string::npos && !has_ended(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  bool has_ended() {
    int status = 0;
    if (!status_ && waitpid(child_, &status, WNOHANG) == child_) status_ = status;
    return status_.has_value();
  }
  /// Sends the signal unless it has ended, and waits; its exit code, or -1 when a signal ended it.
  int end_with(int signal) {
    if (!has_ended()) {
      int status = 0;
      kill(child_, signal);
      waitpid(child_, &status, 0);
      status_ = status;
    }
    return WIFEXITED(*status_) ? WEXITSTATUS(*status_) : -1;
  }

 private:
  const WorkFolder& folder_;
  pid_t child_ = -1;
  std::optional<int> status_;
};

}  // namespace lantern::cli
