// NewFolder: a folder that becomes visible under its name complete, or never.
//
//   create ".shardctl-page-RANDOM" beside the target, locked
//     -> write
//     -> publish: rename
//
// However the process ends, there is a complete folder or none. Files are not flushed to the disk: after a
// failure of the power, some of those just published may be empty.
//
// The kernel drops the lock (flock) however the process ends, so folders without one are left over, and the
// next NewFolder in the same place removes them. Where locks are not visible between nodes, that can remove
// the folder of a process on another node: that process then fails with an error and publishes nothing.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "base/unique_handle.hpp"

namespace shard::ctl {

// Errors: io.
void write_new_file(const std::filesystem::path& path, std::span<const std::byte> bytes);

class NewFolder {
 public:
  // `is_ours` says of an existing folder that it may be replaced; null: none may, except an empty one.
  // Errors: invalid_argument, naming the target and what is there; io.
  NewFolder(const std::filesystem::path& target,
            const std::function<bool(const std::filesystem::path&)>& is_ours);
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  // Removes what was written unless it was published.
  ~NewFolder();

  const std::filesystem::path& path() const noexcept { return path_; }  // to write to
  const std::filesystem::path& target() const noexcept { return target_; }
  // Errors: io; invalid_argument if something appeared under the name of the target meanwhile.
  // Then the target did not change.
  void publish();

 private:
  std::filesystem::path target_;
  std::filesystem::path path_;
  UniqueFd lock_;
  bool replaces_ = false;
};

}  // namespace shard::ctl
