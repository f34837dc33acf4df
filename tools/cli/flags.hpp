// Replaces names of options in messages of the libraries by the flags of our programs.
#pragma once

#include <string>
#include <string_view>

namespace shard::cli {

// Libraries name an option as `max_pixels`; the result names it as --max-pixels. Text in double quotes
// (paths, values) does not change.
std::string with_flags(std::string_view message);

}  // namespace shard::cli
