// FileNames: the files that keys become in a folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <unordered_set>

namespace shard::ctl {

// Keys as they are stored, escaped. unsupported: a key is no path inside of a folder, or two samples would be
// one file; the message names the key and what takes it.
class FileNames {
 public:
  // All keys come first, so most of what cannot be a folder of files is found before one is written.
  void add(std::string_view key);
  // Each key once, after all were added. Relative to the folder. `is_input`: the file is the input of this
  // key, so its name stays whatever it is; others get a name of a JPEG.
  std::filesystem::path name_of(std::string_view key, bool is_input);

 private:
  std::unordered_set<std::uint64_t> keys_;  // digests of paths
  std::unordered_set<std::uint64_t> folders_;
  std::unordered_set<std::uint64_t> taken_;
};

}  // namespace shard::ctl
