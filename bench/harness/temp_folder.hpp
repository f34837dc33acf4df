// A temporary folder. The destructor removes it.
#pragma once

#include <filesystem>

namespace shard::bench {

class TempFolder {
 public:
  // "shardbench-XXXXXX" below `parent`; empty: below $TMPDIR or /tmp. Errors: io, naming the path.
  explicit TempFolder(const std::filesystem::path& parent);
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder();
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace shard::bench
