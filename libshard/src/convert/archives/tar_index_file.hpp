// Keeps the index of a tar archive (tar_index.hpp) from one run to the next (kept_file.hpp). To be believed
// it must describe places inside the archive, too.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "convert/archives/kept_file.hpp"
#include "convert/archives/tar_index.hpp"

namespace shard::convert {

class TarIndexFile {
 public:
  // Below as many entries, reading the headers again takes no time.
  static constexpr std::uint64_t kFewestEntries = 1000;

  // `fd` has `archive` open, and stays open. An empty folder: nothing is kept.
  TarIndexFile(std::filesystem::path folder, const std::filesystem::path& archive, int fd);
  // Nothing: there is no index that is believed.
  std::optional<TarIndex> read() const noexcept;
  // Before the archive is listed for write(): ArchiveState::flush().
  void flush() noexcept { state_.flush(); }
  // Makes the folder if it is not there. False: it is not kept.
  bool write(const TarIndexWriter& index) const noexcept;

 private:
  int fd_;
  ArchiveState state_;
  KeptFile file_;
};

}  // namespace shard::convert
