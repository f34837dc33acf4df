// The folder in which a data set is made that will take the place of another one, or be joined with it.
#pragma once

namespace shard::convert {

inline constexpr const char* kStagingFolder = ".shardify-next";

}  // namespace shard::convert
