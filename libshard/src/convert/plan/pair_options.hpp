// Further images as people write them: --mask-dir and --pair.
#pragma once

#include <string>
#include <vector>

#include "convert/plan/text_options.hpp"

namespace shard::convert {

// Errors: invalid_argument, naming option, value and what is expected.
std::vector<FurtherImages> parse_pairs(const TextOptions& text);

}  // namespace shard::convert
