// The JPEGs of a measurement: in memory, and as a list from which the conversion reads them (with a warm page
// cache). Files that are not JPEGs, or that decode with a warning, are in neither.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "harness/temp_folder.hpp"

namespace shard::bench {

class PhotoSet {
 public:
  // `images` is a folder. `count` 0: every file once or, if `most` is not 0, `most` of them, evenly chosen.
  // `count` less than there are: evenly chosen. More: files are repeated under other names (symbolic links
  // below `scratch`). Errors: invalid_argument (no JPEG), resource (they do not fit into memory: give
  // --count), not_found, io, cancelled.
  PhotoSet(const std::string& images, std::uint64_t count, const std::filesystem::path& scratch,
           const std::atomic<bool>& cancel, std::uint64_t most = 0);

  std::uint64_t size() const noexcept { return count_; }
  std::span<const std::byte> file(std::uint64_t index) const { return files_[index % files_.size()]; }
  const std::vector<std::string>& paths() const noexcept { return paths_; }  // of the files, below root()
  std::uint64_t distinct() const noexcept { return files_.size(); }
  std::uint64_t excluded() const noexcept { return excluded_; }  // of the folder's files
  std::uint64_t bytes() const noexcept { return bytes_; }        // of all size() pictures
  std::uint64_t pixels() const noexcept { return pixels_; }
  // For convert::Options: images and root.
  const std::string& list() const noexcept { return list_; }
  const std::filesystem::path& root() const noexcept { return root_; }

 private:
  void load(const std::filesystem::path& root, std::vector<std::string>& paths, std::uint64_t count,
            const std::atomic<bool>& cancel);

  std::vector<std::vector<std::byte>> files_;
  std::vector<std::uint64_t> file_pixels_;
  std::uint64_t count_ = 0;
  std::uint64_t excluded_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t pixels_ = 0;
  std::vector<std::string> paths_;
  std::string list_;
  std::filesystem::path root_;
};

}  // namespace shard::bench
