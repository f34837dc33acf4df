// Publishes files in a folder that several processes may use. A file appears complete or not at all, and
// replaces another one only if the caller asks for it.
//
// Each function writes a temporary file in the same folder, then: fsync, rename, fsync of the folder. Errors:
// io, not_found (no such folder), naming the path. Different objects may be used by different threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

namespace shard {

// Writes `content` to `path`. Replaces an existing file.
void replace_file(const std::filesystem::path& path, std::string_view content);

// Creates `path` with `content`. False: the name exists, and nothing has changed. If several processes do
// this at once, one of them gets true.
bool publish_new_file(const std::filesystem::path& path, std::string_view content);

// A file that is written piece by piece, with a buffer of 1 MiB. Removed unless published.
class PendingFile {
 public:
  explicit PendingFile(const std::filesystem::path& path);
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;
  ~PendingFile();
  void append(std::string_view text);
  void append(std::span<const std::byte> bytes);
  // Writes what is in the buffer.
  void flush();
  // Replaces an existing file. May be called once.
  void publish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Flushes renamed, new and removed names of `folder` to the disk. No error if the file system cannot flush
// folders, or if this process may not read this one.
void flush_folder(const std::filesystem::path& folder);

// Removes temporary files that earlier processes of this host left in `folder`, and those that other hosts
// left more than a day ago. Returns how many. Files that a running process writes stay.
std::uint64_t remove_temporaries(const std::filesystem::path& folder);

// Whether these functions use names like `name` for temporary files.
bool is_temporary_name(std::string_view name) noexcept;

}  // namespace shard
