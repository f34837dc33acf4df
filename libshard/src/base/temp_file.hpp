// TempFile: a file that becomes visible under its name complete, or never.
//
//   create ".NAME.HOST-BOOT.PID.RANDOM.part" beside the target, locked -> write -> publish: fsync, rename,
//   fsync the folder
//
// The lock (flock, exclusive) says that the writer lives: the system drops it however the process ends. Some
// network file systems keep such a lock on the writer's node only, so the lock of a file counts only where
// the file was written: HOST is the node's name and BOOT stands for this start of its system. A temporary is
// stale when
//   - it was written on this node since its last start, or before that, and its lock can be taken; or
//   - it was not written to for kStaleHours, wherever it comes from, and nobody is seen to hold its lock.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/file_io.hpp"

namespace shard {

// Temporary files of other nodes are removed when their last write is longer ago than this.
inline constexpr int kStaleHours = 24;

class TempFile {
 public:
  // Errors: io, not_found (no such folder). The mode is 0666 less the umask.
  explicit TempFile(std::filesystem::path target);
  TempFile(TempFile&&) noexcept = default;
  TempFile& operator=(TempFile&&) = delete;
  ~TempFile();  // removes the file unless it was published

  int fd() const noexcept { return fd_.get(); }
  const std::filesystem::path& target() const noexcept { return target_; }

  // All three: errors io; the target is untouched unless only the flush of the folder failed. Once.
  // Takes the place of what has the name.
  void publish();
  // False when something has the name: that stays, and this file is removed.
  bool publish_new();
  // A file with the very same bytes that has the name already stays, and this one is removed; anything else
  // is replaced. So a finished file is never away, and keeps its inode.
  void publish_same();
  // Removes the file now. Nothing happens when it was published.
  void discard() noexcept;

 private:
  void finish();  // after the name is ours

  std::filesystem::path target_;
  std::filesystem::path path_;
  UniqueFd fd_;  // invalid once published or moved from
};

// Whether `name` is one that TempFile gives, or gave in earlier versions (without HOST-BOOT).
bool is_temporary_name(std::string_view name) noexcept;

}  // namespace shard
