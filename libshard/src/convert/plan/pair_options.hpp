// Further images as people write them: the values of --mask and --pair.
#pragma once

#include <string>
#include <string_view>

#include "shard/convert/options.hpp"

namespace shard::convert {

// "NAME=DIR", with any of ",suffix=S", ",role=mask", ",classes=N", ",ignore=N", ",dtype=D", ",filter=F",
// ",codec=C" and ",size=any" behind it. option: named in errors, which are invalid_argument.
FurtherImages parse_pair(std::string_view option, const std::string& text);

}  // namespace shard::convert
