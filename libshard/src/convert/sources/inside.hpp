// Refuses to write a data set into another one.
#pragma once

#include <filesystem>

#include "shard/error.hpp"

namespace shard::convert {

// Throws invalid_argument if `folder` is the folder of the data set `of`, or inside of it. Errors: io.
void refuse_inside(const std::filesystem::path& folder, const std::filesystem::path& of);

}  // namespace shard::convert
