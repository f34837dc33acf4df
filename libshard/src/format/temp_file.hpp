// TempFile: a file that becomes visible under its name complete, or never.
//
//   create ".NAME.PID.RANDOM.part" beside the target, locked -> write -> publish: fsync, rename, fsync the
//   folder
//
// The lock (flock, exclusive) says that the writer lives: the system drops it however the process ends. A
// temporary whose lock can be taken is stale. Where the file system has no flock, temporaries are never taken
// for stale.
#pragma once

#include <filesystem>
#include <string_view>

#include "format/file_io.hpp"

namespace shard {

class TempFile {
 public:
  // Errors: io, not_found (no such folder). The mode is 0666 less the umask.
  explicit TempFile(std::filesystem::path target);
  TempFile(TempFile&&) noexcept = default;
  TempFile& operator=(TempFile&&) = delete;
  ~TempFile();  // removes the file unless it was published

  int fd() const noexcept { return fd_.get(); }
  const std::filesystem::path& target() const noexcept { return target_; }

  // Errors: io; the target is untouched unless only the flush of the folder failed. Once.
  void publish();
  // Removes the file now. Nothing happens when it was published.
  void discard() noexcept;

 private:
  std::filesystem::path target_;
  std::filesystem::path path_;
  UniqueFd fd_;  // invalid once published or moved from
};

// Whether `name` is one that TempFile gives.
bool is_temporary_name(std::string_view name) noexcept;

}  // namespace shard
