#pragma once

#include <stdexcept>
#include <string>

namespace lantern {

/// Category of a failure; the command line maps it to an exit code.
enum class ErrorCode {
  kUsage,          ///< wrong argument, verb, flag or value
  kInvalidConfig,  ///< cfg or .data file
  kInvalidData,    ///< names, lists, labels, images, weights
  kResource,       ///< memory, disk, unwritable output folder
  kDevice,         ///< device missing or failing
  kFailed,         ///< the run itself failed (loss not finite, a check that did not hold)
  kInternal,       ///< our own fault
  kInterrupted,    ///< Ctrl-C after the checkpoint
};

/// What every function of the library throws, and the only thing it throws. what() is one line:
/// `where: message`.
class Exception : public std::runtime_error {
 public:
  Exception(ErrorCode code, std::string where, std::string message);
  Exception(const Exception&) = default;
  Exception& operator=(const Exception&) = default;
  ~Exception() override;

  ErrorCode code() const noexcept { return code_; }
  /// `file:line`, a path or the name of an argument; may be empty.
  const std::string& where() const noexcept { return where_; }
  /// What is wrong and how to mend it.
  const std::string& message() const noexcept { return message_; }

 private:
  ErrorCode code_;
  std::string where_;
  std::string message_;
};

}  // namespace lantern
