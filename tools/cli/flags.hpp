// Names of options in messages of the libraries, as users of a program know them.
#pragma once

#include <string>
#include <string_view>

namespace shard::cli {

// Libraries name their options `max_pixels`: here --max-pixels. What stands in double quotes (paths, values)
// stays as it is.
std::string with_flags(std::string_view message);

}  // namespace shard::cli
