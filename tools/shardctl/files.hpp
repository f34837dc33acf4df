// Files that shardctl reads and writes besides shards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_handle.hpp"
#include "shard/safetensors.hpp"

namespace shard::ctl {

struct FileTraits {
  using type = int;
  static type invalid() noexcept { return -1; }
  static void close(type fd) noexcept;
};
using FileHandle = UniqueHandle<FileTraits>;

// Makes a folder for output unless it is there. Errors: io.
void make_folder(const std::filesystem::path& folder);
// Refuses (invalid_argument, naming it) a folder in which anything is that is not `ours`. Errors: io.
void require_only(const std::filesystem::path& folder,
                  const std::function<bool(const std::string& name)>& ours);

// Names of the published shard files in a folder (shard-*.safetensors), sorted. Errors: io.
std::vector<std::string> list_shard_files(const std::filesystem::path& folder);

struct SafetensorsFile {
  SafetensorsHeader header;
  std::uint64_t size_bytes = 0;
};
// The checked header of any safetensors file; reads nothing else. Errors: not_found, io, corrupt naming path
// and rule.
SafetensorsFile read_safetensors_head(const std::filesystem::path& path);

// A new file, written in one go: its bytes are in `path` after finish() and not before (a temporary file
// beside it that is removed when the object ends first). One thread.
class OutputFile {
 public:
  explicit OutputFile(std::filesystem::path path);  // errors: io
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  void write(std::span<const std::byte> bytes);  // errors: io (ENOSPC, ...)
  void write(std::string_view text);
  void finish();  // flush, fsync, rename
 private:
  void flush();
  [[noreturn]] void fail(const char* what, int error) const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  FileHandle file_;
  std::vector<std::byte> buffer_;
};

}  // namespace shard::ctl
