// Whether a mean and a standard deviation count in the values that they are applied to.
#pragma once

#include <string>

#include "shard/normalization.hpp"

namespace shard {

// For values that are divided to 0 to 1 first (those of u8 and u16): what is wrong with a mean and a std that
// count in bytes, as an error says it. Empty: nothing.
std::string scale_mistake(const Normalization& normalization);

}  // namespace shard
