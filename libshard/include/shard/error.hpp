// shard::Error: the one exception type of the libraries.
//
// The code says what a caller can do about it. The message names the path or sample, the value that was
// found, the bound it broke, and what to do next. Exceptions of other libraries are translated where these
// are called.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace shard {

enum class ErrorCode {
  // An option or argument is out of its bounds: change it.
  invalid_argument,
  // A path does not exist.
  not_found,
  // The system refused a read or write; its reason is in the message. Free space, fix permissions, or retry.
  io,
  // The bytes break the format or a checksum: restore the file or convert again.
  corrupt,
  // Valid input of a kind that this build does not handle.
  unsupported,
  // A limit of an option or of the system would be exceeded (memory, pixels, descriptors).
  resource,
  // The caller asked to stop.
  cancelled,
};

// "invalid_argument", "not_found", ...
std::string_view to_string(ErrorCode code) noexcept;

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace shard
