// Reading from an open shard. Its bytes may change meanwhile, so each offset is checked again.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <utility>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "base/files/file_io.hpp"
#include "base/system/guarded_read.hpp"
#include "base/text/quote.hpp"
#include "format/shard/shard_profile.hpp"
#include "format/shard/shard_reader_impl.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"

namespace shard {

bool ShardReader::Impl::has_head(int file) const {
  std::vector<std::byte> found(static_cast<std::size_t>(header.head_end));
  std::vector<std::byte> head(found.size());
  pread_all(file, found, 0, path);
  copy(head, mapped(0, head.size()));
  return found == head;
}

StoredSampleRange ShardReader::Impl::stored_sample(std::uint64_t number) const {
  const StoredImages& field = in_order(static_cast<std::size_t>(number / header.samples));
  const std::uint64_t sample = number % header.samples;
  const FileRange range = field.range_of(sample);
  return {range.begin, range.size_bytes, field.frame_checksum(sample)};
}

std::uint64_t ShardReader::Impl::first_stored_from(std::uint64_t offset) const {
  std::uint64_t first = 0;
  std::uint64_t last = images.size() * header.samples;
  while (first < last) {
    const std::uint64_t middle = first + (last - first) / 2;
    const StoredImages& field = in_order(static_cast<std::size_t>(middle / header.samples));
    if (field.range_of(middle % header.samples).begin < offset)
      first = middle + 1;
    else
      last = middle;
  }
  return first;
}

std::vector<FileRange> ShardReader::Impl::damaged_ranges(
    int file, const std::function<bool(std::uint64_t)>& proven) const {
  std::vector<FileRange> damaged;
  std::vector<std::byte> bytes;
  if (!has_head(file)) damaged.push_back({0, header.head_end});
  for (const FieldSpec& field : header.fields) {
    const TensorInfo& padding = *header.container.find(field_tensor(field, "padding"));
    bytes.resize(static_cast<std::size_t>(padding.size_bytes()));
    pread_all(file, bytes, header.container.data_begin + padding.begin, path);
    if (std::any_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte != std::byte{0}; }))
      damaged.push_back({header.container.data_begin + padding.begin, padding.size_bytes()});
  }
  for (std::uint64_t number = 0; number < images.size() * header.samples; ++number) {
    if (proven && proven(number)) continue;
    const StoredSampleRange sample = stored_sample(number);
    bytes.resize(static_cast<std::size_t>(sample.size_bytes));
    pread_all(file, bytes, sample.begin, path);
    if (xxh3(bytes) != sample.digest) damaged.push_back({sample.begin, sample.size_bytes});
  }
  return damaged;
}

std::string ShardReader::Impl::change() const {
  if (maker) return {};  // its images are compared with what was listed when they are read
  if (remote) {          // what comes from the server is compared with its digests
    doubt_changed_copy();
    return {};
  }
  struct stat now {};
  if (::fstatat(folder_fd(), file_name.c_str(), &now, 0) != 0) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR)
      return "the file is gone: it was deleted or renamed while it was in use; restore it and open the data "
             "set "
             "again";
    return fmt::format("the file cannot be accessed any more: {}", std::generic_category().message(error));
  }
  const auto size = static_cast<std::uint64_t>(now.st_size);
  if (now.st_dev != identity.device || now.st_ino != identity.inode)
    return "the file was replaced by another one while it was in use; open the data set again";
  if (size == identity.size_bytes) return {};
  return fmt::format(
      "the file changed while it was in use: {} bytes now, {} when it was opened; write it again in place "
      "and the next epoch continues, or restore it and open the data set again",
      size, identity.size_bytes);
}

void ShardReader::Impl::doubt_changed_copy() const {
  if (copied.load(std::memory_order_acquire) != CopyState::proven || !named_copy) return;
  struct stat now {};
  if (::fstatat(named_copy->folder->get(), named_copy->name.c_str(), &now, AT_SYMLINK_NOFOLLOW) != 0 ||
      !named_copy->is(now))
    copied.store(CopyState::doubtful, std::memory_order_release);
}

void ShardReader::Impl::check_unchanged() const {
  if (const std::string what = change(); !what.empty()) corrupt(what);
}

void ShardReader::Impl::copy(std::span<std::byte> out, std::span<const std::byte> from) const {
  if (guarded_copy(out, from)) return;
  check_unchanged();  // throws if the file was cut
  throw Error(
      ErrorCode::io,
      fmt::format("cannot read {}: a page of it could not be read (did its disk fail?)", quoted(path)));
}

void ShardReader::Impl::require_local() const {
  if (maker)
    throw Error(
        ErrorCode::unsupported,
        fmt::format("{} is not converted, so its samples are not in memory: use read() or read_frame()",
                    quoted(path)));
  if (!remote || has_copy()) return;
  throw Error(
      ErrorCode::unsupported,
      fmt::format("{} is on a server, so its stored bytes are not in memory: use read() or read_frame()",
                  quoted(path)));
}

bool ShardReader::Impl::load_copy(std::span<std::byte> out, std::uint64_t begin, std::uint64_t digest) const {
  const std::uint64_t before = abandoned.load(std::memory_order_acquire);
  if (!has_copy() || !guarded_copy(out, mapped(begin, out.size()))) return false;
  doubt_changed_copy();
  // Abandoned meanwhile, it may already have been replaced by another proven one.
  const bool same = abandoned.load(std::memory_order_acquire) == before;
  return (same && copied.load(std::memory_order_acquire) == CopyState::proven) || xxh3(out) == digest;
}

std::pair<std::uint64_t, std::uint64_t> ShardReader::Impl::offsets_at(const char* name, std::uint64_t table,
                                                                      std::uint64_t i,
                                                                      std::uint64_t end) const {
  std::array<std::byte, 16> bytes{};
  copy(bytes, mapped(table + i * 8, 16));
  const std::uint64_t first = load_u64(bytes);
  const std::uint64_t second = load_u64(bytes, 8);
  if (first > second || second > end) {
    check_unchanged();
    corrupt(
        fmt::format("{}[{}] and the next entry are {} and {}, which differs from when it was opened: another "
                    "program writes to the file",
                    name, i, first, second));
  }
  return {first, second};
}

std::string ShardReader::Impl::key(std::uint64_t sample) const {
  const auto [begin, end] = offsets_at("key_offsets", key_offsets, sample, keys_bytes);
  std::string text(static_cast<std::size_t>(end - begin), '\0');
  copy(std::as_writable_bytes(std::span(text)), mapped(keys + begin, end - begin));
  return text;
}

}  // namespace shard
