// TempFile: a file that becomes visible under its name complete, or never.
//
//   create ".NAME.HOST-BOOT.PID.RANDOM.part" beside the target, locked
//     -> write
//     -> publish: fsync, rename, fsync the folder
//
// The lock (flock, exclusive) shows that the writer is running: the kernel drops it however the process ends.
// On some network file systems such a lock is visible on the writer's node only, so a lock counts only on the
// node where the file was written. HOST is the name of that node, and BOOT identifies the start of its
// system. A temporary file is stale if
//   - it was written on this node, and its lock is free; or
//   - it comes from any node, was not written to for kStaleHours, and no lock on it is visible.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/files/file_io.hpp"

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

  // One of the four may be called, once. Errors: io; then the target did not change, unless only the flush
  // of the folder failed.

  // Replaces an existing file.
  void publish();
  // The same without flushing: after a crash of the system, any part of the file may be missing. For files
  // whose readers notice that.
  void publish_unflushed();
  // Does not replace: false if there is a file, which stays, and this file is removed.
  bool publish_new();
  // An existing file with the same bytes stays, and this one is removed. Any other file is replaced. So a
  // finished file is never missing, and it keeps its inode.
  void publish_same();
  // Removes the file now. Does nothing if it was published.
  void discard() noexcept;

 private:
  void finish();  // after the rename

  std::filesystem::path target_;
  std::filesystem::path path_;
  UniqueFd fd_;  // invalid once published or moved from
};

// Whether TempFile uses names like `name`, or did in earlier versions (without HOST-BOOT).
bool is_temporary_name(std::string_view name) noexcept;

// A line that identifies the start of this system. Empty where the system has none.
std::string read_boot_id();

}  // namespace shard
