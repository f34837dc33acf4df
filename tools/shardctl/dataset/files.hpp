// Files that shardctl reads and writes besides shards.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "shard/safetensors.hpp"

namespace shard::ctl {

// Makes a folder for output unless it is there. Errors: invalid_argument (an address), io.
void make_folder(const std::filesystem::path& folder);
// Refuses (invalid_argument, naming it) a folder in which anything is that is not `ours`. Errors: io.
void require_only(const std::filesystem::path& folder,
                  const std::function<bool(const std::string& name)>& ours);

// Names of the published shard files in a folder (shard-*.safetensors), sorted. Errors: io.
std::vector<std::string> list_shard_files(const std::filesystem::path& folder);

struct SafetensorsFile {
  SafetensorsHeader header;
  std::uint64_t size_bytes = 0;
};
// The checked header of any safetensors file; reads nothing else. Errors: not_found, io, corrupt naming path
// and rule.
SafetensorsFile read_safetensors_head(const std::filesystem::path& path);

}  // namespace shard::ctl
