// Standard output with its failures seen: a closed pipe or a full disk is an Error(io), never a silent loss.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace shard::cli {

void write_out(std::string_view text);  // buffered; throws io
void flush_out();                       // throws io when anything written since the start was lost

template <class... Args>
void out(fmt::format_string<Args...> format, Args&&... args) {
  write_out(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace shard::cli
