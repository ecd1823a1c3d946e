#include <exception>
#include <new>
#include <string>
#include <vector>

#include "cli/verbs.hpp"
#include "core/error.hpp"

int main(int argc, char** argv) {
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
  } catch (const std::exception& error) {
    return fail(std::string("internal error: ") + error.what(), lantern::ErrorCode::kInternal);
  }
}
