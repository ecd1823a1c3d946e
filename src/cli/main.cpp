#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "cli/verbs.hpp"
#include "core/error.hpp"

namespace {
// Compute threads that spin while they wait take the processor from the loader's threads and from
// other programs: with one busy process beside it a step takes up to ten times as long. Spinning
// for some ten microseconds keeps nearly all the speed that endless spinning has alone. OpenMP
// reads this setting while it is loaded, so the program starts once more with it, unless the user
// has chosen a policy.
void start_with_short_waiting(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  setenv("GOMP_SPINCOUNT", "20000", 0);
  // By its own path, so that it keeps its name in lists of processes; where that fails it goes on
  // as it is.
  std::error_code code;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", code);
  if (!code) execv(program.c_str(), argv);
}

// Standard streams that the caller closed would lend their numbers to the next files opened, and
// results be written into those. Reading and writing what stands in for them fails.
void hold_standard_streams() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) != -1) continue;
    static_cast<void>(open("/", O_RDONLY | O_DIRECTORY));  // the lowest free number: this one
  }
}
}  // namespace

int main(int argc, char** argv) {
  hold_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond `ulimit -f` is a failed write like any other
  if (argc > 0) start_with_short_waiting(argv);
  lantern::cli::Terminal terminal;
  const auto fail = [&](const std::string& message, lantern::ErrorCode code) {
    terminal.error(message);
    return lantern::exit_code(code);
  };
  try {
    return lantern::cli::run_command(
        std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc), terminal);
  } catch (const lantern::Error& error) {
    return fail(error.what(), error.code());
  } catch (const std::bad_alloc&) {
    return fail(
        "out of memory; a smaller mini-batch (or -batch) needs less, `lantern plan` shows how much",
        lantern::ErrorCode::kResource);
  } catch (const std::system_error& error) {  // the system refuses threads, files or memory
    return fail(error.what(), lantern::ErrorCode::kResource);
  } catch (const std::exception& error) {
    return fail(std::string("internal error: ") + error.what(), lantern::ErrorCode::kInternal);
  }
}
