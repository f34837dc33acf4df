// What lies in the folder in which loaders keep shards of data sets on servers (docs/remote.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "shard/error.hpp"

namespace shard {

struct CacheFile {
  std::string name;
  std::uint64_t size_bytes = 0;
  // proven: it had the digests of its shard at this start of the system, and was not changed since.
  // unfinished: a process fills it, or was ended while it did. foreign: no loader has made it.
  enum class State : std::uint8_t { proven, unproven, unfinished, foreign } state = State::foreign;
};

// In the order of their names. Errors: not_found, io.
std::vector<CacheFile> list_cache(const std::filesystem::path& folder);
// Removes a file of the list, with its proof. Returns false if a process is filling it, or if it is foreign.
// Errors: io.
bool remove_cached(const std::filesystem::path& folder, const CacheFile& file);

}  // namespace shard
