// What was found out about archives, kept in a folder of the user from one run to the next.
//
// Only an optimisation: whatever goes wrong, it is found out again. What was kept is believed if
//
//   - it is of these archives: device, inode, size, times of modification and of change, in nanoseconds;
//   - nobody else can have written it: file and folder belong to the user or root, and no others may write;
//   - its bytes have the digest that it says.
//
// It appears complete or not at all, so any number of processes may do this at once. Nothing is kept of an
// archive that was changed in the last seconds, which the times of a file system may not tell from a later
// change, nor of one that changed while it was read, nor of one in memory (tmpfs), whose times do not tell
// writes through mappings.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace shard::convert {

// $SHARDIFY_INDEX_DIR (empty: none), or else shardify in $XDG_CACHE_HOME or ~/.cache. Empty: there is none.
std::filesystem::path kept_files_folder();

// Removes what killed processes have left in the folder.
void tidy_kept_files(const std::filesystem::path& folder) noexcept;

// An archive, as it was when this object was made.
class ArchiveState {
 public:
  // `fd` has it open, and stays open.
  explicit ArchiveState(int fd);
  // Equal texts: the archive is the same. Empty: it cannot be told.
  const std::string& text() const noexcept { return text_; }
  // Before the archive is read for what will be kept. What was written through mappings gets to the disk, so
  // that whoever writes there again changes the times of the archive.
  void flush() noexcept;
  // What was read since flush() may be kept.
  bool is_settled() const noexcept;

 private:
  int fd_;
  std::string text_;
  bool settled_ = false;
};

class KeptFile {
 public:
  // `kind`: one word, in the name of the file and in its head. `names`: of what it is kept, for the name of
  // the file; `state`: for which it is believed. An empty folder: nothing is kept.
  KeptFile(std::filesystem::path folder, std::string_view kind, std::string_view names,
           std::string_view state);
  // Nothing: there is none that is believed.
  std::optional<std::string> read() const noexcept;
  // Makes the folder if it is not there. False: it is not kept.
  bool write(std::string_view bytes) const noexcept;

 private:
  std::string head(std::string_view bytes) const;

  std::filesystem::path folder_;
  std::filesystem::path file_;  // empty: nothing is kept
  std::string text_;
};

}  // namespace shard::convert
