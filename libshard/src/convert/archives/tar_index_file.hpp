// Keeps the index of a tar archive (tar_index.hpp) in a folder of the user, from one run to the next.
//
// Only an optimisation: whatever goes wrong, the archive is listed as without it. An index is believed if
//
//   - it is of this archive: device, inode, size, times of modification and of change, in nanoseconds;
//   - nobody else can have written it: file and folder belong to the user or root, and no others may write;
//   - its bytes have the digest that it says, and describe places inside the archive.
//
// It appears complete or not at all, so any number of processes may do this at once. It is not written for an
// archive that was changed in the last seconds, which the times of a file system may not tell from a later
// change, nor for one that changed while it was listed, nor for one in memory (tmpfs), whose times do not
// tell writes through mappings.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "convert/archives/tar_index.hpp"

namespace shard::convert {

// $SHARDIFY_INDEX_DIR (empty: none), or else shardify in $XDG_CACHE_HOME or ~/.cache. Empty: there is none.
std::filesystem::path tar_index_folder();

// Removes what killed processes have left in the folder.
void tidy_tar_indices(const std::filesystem::path& folder) noexcept;

class TarIndexFile {
 public:
  // Below as many entries, reading the headers again takes no time.
  static constexpr std::uint64_t kFewestEntries = 1000;

  // `fd` has `archive` open, and stays open. An empty folder: nothing is kept.
  TarIndexFile(std::filesystem::path folder, const std::filesystem::path& archive, int fd);
  // Nothing: there is no index that is believed.
  std::optional<TarIndex> read() const noexcept;
  // Before the archive is listed for write(). What was written through mappings gets to the disk, so that
  // whoever writes there again changes the times of the archive.
  void flush() noexcept;
  // Makes the folder if it is not there. False: it is not kept.
  bool write(const TarIndexWriter& index) const noexcept;

 private:
  std::string head(std::string_view bytes) const;

  std::filesystem::path folder_;
  std::filesystem::path file_;
  int fd_;
  std::string state_;  // of the archive when this object was made. Empty: it cannot be told
  bool settled_ = false;
};

}  // namespace shard::convert
