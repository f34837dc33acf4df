// Standard output with its failures seen: a closed pipe or a full disk is an Error(io), never a silent loss.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "shard/error.hpp"

namespace shard::cli {

// The reader of the pipe that standard output is has closed it.
class BrokenPipe : public Error {
 public:
  using Error::Error;
};

void write_out(std::string_view text);  // buffered; throws io, or BrokenPipe
void flush_out();                       // throws io when anything written since the start was lost

template <class... Args>
void out(fmt::format_string<Args...> format, Args&&... args) {
  write_out(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace shard::cli
