// The version of the libraries, the programs and the Python package. CMake and pip read it from here.
//
// Numbers follow semantic versioning: code that was built against MAJOR.MINOR works with any later PATCH of
// it.
#pragma once

#include <string_view>

#define SHARD_VERSION_MAJOR 0
#define SHARD_VERSION_MINOR 1
#define SHARD_VERSION_PATCH 0
#define SHARD_VERSION_STRING "0.1.0"

namespace shard {

inline constexpr std::string_view kVersion = SHARD_VERSION_STRING;

}  // namespace shard
