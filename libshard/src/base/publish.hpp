// How files appear in a folder that several processes may use: whole or not at all, and without taking
// another file's place unless that is asked for.
//
// Each: temporary file in the same folder, write, fsync, rename, fsync of the folder. Errors: io, not_found
// (no such folder), naming the path. Different objects may be used by different threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

namespace shard {

// Gives `path` the bytes `content`, whatever had the name before.
void replace_file(const std::filesystem::path& path, std::string_view content);

// Creates `path` with `content`; false, and nothing has changed, when something has that name. Of several
// processes that do this at once, one gets true.
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
  // Replaces what has the name. Once.
  void publish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// What was renamed, made or removed in `folder` is on the disk when this returns. No error where the
// file system cannot flush folders, or this process may not read this one.
void flush_folder(const std::filesystem::path& folder);

// Removes what earlier processes of this host left under such names in `folder`, and what others left more
// than a day ago; how many. Files that a running process writes stay.
std::uint64_t remove_temporaries(const std::filesystem::path& folder);

// Whether a file of that name is one under which these functions write before they rename.
bool is_temporary_name(std::string_view name) noexcept;

}  // namespace shard
