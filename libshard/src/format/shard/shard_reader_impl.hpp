// What a ShardReader holds. Private to shard_reader_open.cpp (opening and checking a file),
// shard_reader_bytes.cpp (reading from it), stored_images.cpp (images of a field) and shard_reader.cpp (the
// class).
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/files/file_io.hpp"
#include "base/files/mapped_file.hpp"
#include "base/text/quote.hpp"
#include "format/shard/shard_profile.hpp"
#include "format/shard/unconverted.hpp"
#include "remote/s3/remote_file.hpp"
#include "shard/codec.hpp"
#include "shard/error.hpp"
#include "shard/shard_reader.hpp"

namespace shard {

inline constexpr int kRemoteAttempts = 3;  // to get bytes that match their digest

// A copy of a shard that others could write to, as it was when it was proven. A write changes its times.
struct NamedCopy {
  std::shared_ptr<const UniqueFd> folder;
  std::string name;
  struct stat proven {};

  bool is(const struct stat& now) const noexcept {
    const auto same = [](const timespec& a, const timespec& b) {
      return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
    };
    return now.st_dev == proven.st_dev && now.st_ino == proven.st_ino && now.st_size == proven.st_size &&
           same(now.st_mtim, proven.st_mtim) && same(now.st_ctim, proven.st_ctim);
  }
};

// The head (everything before the images) is read into memory, checked and dropped. What is needed later is
// read from the mapping. The file may be changed meanwhile, so an offset from the mapping is checked again
// before it is used.
struct ShardReader::Impl {
  std::filesystem::path path;
  // The file is looked up as `file_name` in `folder`, if there is one.
  std::shared_ptr<const UniqueFd> folder;
  std::string file_name;
  FileIdentity identity;
  // On a server: the mapping has its head, and samples are read on demand. Null: a file.
  std::unique_ptr<const RemoteFile> remote;
  // Not converted: what makes its samples, and keys and columns. Null: a file, here or on a server.
  std::unique_ptr<const UnconvertedSamples> maker;
  std::vector<std::byte> memory;
  mutable std::atomic<CopyState> copied{CopyState::none};  // remote: what the mapping has beside the head
  mutable std::atomic<std::uint64_t> abandoned{0};         // copies, so far
  std::optional<NamedCopy> named_copy;                     // written before `copied` is
  ShardHeader header;
  // The main images, then those of header.fields.
  std::vector<StoredImages> images;
  std::map<std::string, Column> columns;
  // Offsets in the file.
  std::uint64_t keys = 0, key_offsets = 0;
  std::uint64_t keys_bytes = 0;
  std::optional<MappedFile> mapping;

  [[noreturn]] void corrupt(const std::string& why) const {
    throw Error(ErrorCode::corrupt, fmt::format("shard {}: {}", quoted(path), why));
  }
  [[noreturn]] void corrupt_sample(std::uint64_t sample, const std::string& why) const {
    corrupt(fmt::format("sample {} ({}): {}", sample, quoted_key(key(sample)), why));
  }

  void check_index(std::uint64_t sample) const {
    if (sample < header.samples) return;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("sample {} of shard {}: it has {}", sample, quoted(path), header.samples));
  }
  int folder_fd() const noexcept { return folder ? folder->get() : AT_FDCWD; }
  UniqueFd reopen(int flags) const noexcept {
    return UniqueFd(::openat(folder_fd(), file_name.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | flags));
  }
  std::string change() const;
  void check_unchanged() const;
  // Remote: another program may have written to the copy.
  void doubt_changed_copy() const;
  bool has_copy() const noexcept { return copied.load(std::memory_order_acquire) != CopyState::none; }

  // Remote: from here on, a copy is mapped. What is before it, the head, stays that of the local area,
  // which nobody else can write to.
  std::uint64_t samples_begin() const noexcept {
    return header.head_end / MappedFile::page_bytes() * MappedFile::page_bytes();
  }

  std::span<const std::byte> bytes() const noexcept { return maker ? std::span(memory) : mapping->bytes(); }
  // Bytes of the mapping; the range is inside.
  std::span<const std::byte> mapped(std::uint64_t begin, std::uint64_t size) const {
    return bytes().subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(size));
  }
  void copy(std::span<std::byte> out, std::span<const std::byte> from) const;
  // Stored bytes, from a copy that is proven, or if they match their digest. False: there is no such copy.
  bool load_copy(std::span<std::byte> out, std::uint64_t begin, std::uint64_t digest) const;
  bool has_head(int file) const;
  std::vector<FileRange> damaged_ranges(int file, const std::function<bool(std::uint64_t)>& proven) const;
  // In the order of the file, further fields come before the main images.
  const StoredImages& in_order(std::size_t set) const { return images[(set + 1) % images.size()]; }
  StoredSampleRange stored_sample(std::uint64_t number) const;
  std::uint64_t first_stored_from(std::uint64_t offset) const;
  void require_local() const;
  std::uint64_t load_at(std::uint64_t table, std::uint64_t i) const {
    std::array<std::byte, 8> bytes{};
    copy(bytes, mapped(table + i * 8, 8));
    return load_u64(bytes);
  }
  // Entries i and i + 1 of a table of offsets; the second is `end` at most.
  std::pair<std::uint64_t, std::uint64_t> offsets_at(const char* name, std::uint64_t table, std::uint64_t i,
                                                     std::uint64_t end) const;
  std::string key(std::uint64_t sample) const;

  // The steps of open(). File offsets are positions in `head`.
  using ReadAt = std::function<void(std::uint64_t begin, std::span<std::byte> out)>;
  std::vector<std::byte> read_head(std::uint64_t first_bytes, const ReadAt& read);
  void open_file();
  void open_remote(int copy);
  void take(UnconvertedShard shard);
  // File offset of a tensor; 0: there is none.
  std::uint64_t tensor_begin(std::string_view name) const;
  void find_tensors();
  void check_head(std::span<const std::byte> head) const;
  void check_offsets(std::string_view name, std::span<const std::byte> offsets, std::uint64_t end,
                     bool exact) const;
  void check_padding() const;
  void check_keys(std::span<const std::byte> head) const;
  void check_texts(std::span<const std::byte> head) const;
};

}  // namespace shard
