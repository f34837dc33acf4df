// shard::Error: the one exception type of the libraries.
//
// The code says what a caller can do about it; the message names the path or sample, the value that was
// found, the bound it broke, and what to do next. Exceptions of other libraries are translated where they are
// called.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace shard {

enum class ErrorCode {
  invalid_argument,  // an option or argument is out of its bounds: change it
  not_found,         // a path does not exist
  io,       // the system refused a read or write (errno text in the message): free space, fix rights, retry
  corrupt,  // the bytes break the format or a checksum: restore or convert again
  unsupported,  // valid input of a kind that this build does not handle
  resource,     // a stated or system limit would be exceeded (memory, pixels, descriptors)
  cancelled,    // the caller asked to stop
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
