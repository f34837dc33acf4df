#include "shard/shard_reader.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <functional>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/checksum.hpp"
#include "base/file_io.hpp"
#include "base/guarded_read.hpp"
#include "base/mapped_file.hpp"
#include "base/quote.hpp"
#include "base/utf8.hpp"
#include "format/packed_frame.hpp"
#include "format/shard_profile.hpp"
#include "remote/remote_file.hpp"
#include "shard/codec.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"
#include "shard/remote.hpp"

namespace shard {
namespace {

constexpr std::uint64_t kFirstReadBytes = 64 * 1024;
constexpr int kRemoteAttempts = 3;  // to get bytes that match their digest

// The codec of a shard. It may have tables, which are the same for all shards of a data set, so a thread that
// opens one shard after the other makes them once.
Codec codec_of(const ShardHeader& header) {
  struct Last {
    CodecSpec codec;
    SampleSpec spec;
    Normalization normalization;
    Codec made;
  };
  thread_local std::optional<Last> last;
  if (!last || last->codec != header.codec || last->spec != header.spec ||
      last->normalization != header.normalization) {
    last.emplace(Last{header.codec, header.spec, header.normalization,
                      Codec(header.codec, header.spec, header.normalization)});
  }
  return last->made;
}

}  // namespace

// Where the images of one field are: the main one, or a further one. Offsets in the file.
struct StoredImages {
  std::string name;  // of the field; empty: the main one
  SampleSpec spec;
  CodecSpec::Kind kind = CodecSpec::Kind::none;
  Codec codec;
  std::uint64_t begin = 0, end = 0;
  std::uint64_t checksums = 0, frame_offsets = 0, frame_checksums = 0;
  std::string offsets_name{};  // of the tensor

  bool framed() const noexcept { return kind != CodecSpec::Kind::none; }
  std::string tensor(std::string_view part) const {
    return name.empty() ? std::string(part) : name + '.' + std::string(part);
  }
  // For messages: "field "mask": ".
  std::string place() const {
    return name.empty() ? std::string() : fmt::format("field {}: ", quoted_excerpt(name));
  }
};

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
  mutable std::atomic<CopyState> copied{CopyState::none};  // remote: what the mapping has beside the head
  std::optional<NamedCopy> named_copy;                     // written before `copied` is
  ShardHeader header;
  // The main images, then those of header.fields.
  std::vector<StoredImages> stored;
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

  // Bytes of the mapping; the range is inside.
  std::span<const std::byte> mapped(std::uint64_t begin, std::uint64_t size) const {
    return mapping->bytes().subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(size));
  }
  void copy(std::span<std::byte> out, std::span<const std::byte> from) const;
  // Stored bytes, from a copy that is proven, or if they match their digest. False: there is no such copy.
  bool load_copy(std::span<std::byte> out, std::uint64_t begin, std::uint64_t digest) const;
  bool has_head(int file) const;
  std::vector<FileRange> damaged_ranges(int file, const std::function<bool(std::uint64_t)>& proven) const;
  // In the order of the file, further fields come before the main images.
  const StoredImages& in_order(std::size_t set) const { return stored[(set + 1) % stored.size()]; }
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
  const StoredImages& field(std::size_t index) const {
    if (index < header.fields.size()) return stored[index + 1];
    throw Error(ErrorCode::invalid_argument, fmt::format("image field {} of shard {}: it has {} further ones",
                                                         index, quoted(path), header.fields.size()));
  }
  // File range of a stored sample.
  std::pair<std::uint64_t, std::uint64_t> stored_range(const StoredImages& images,
                                                       std::uint64_t sample) const;
  // Reads the sample into `out`, of spec.size_bytes(). `check_frame`: compares the stored frame with its
  // checksum.
  void load(const StoredImages& images, std::uint64_t sample, std::span<std::byte> out,
            bool check_frame) const;
  // The stored bytes of a sample, as long as `out`.
  void load_stored(const StoredImages& images, std::uint64_t sample, std::uint64_t begin,
                   std::span<std::byte> out) const;
  void read(const StoredImages& images, std::uint64_t sample, std::span<std::byte> out) const;
  void read_frame(const StoredImages& images, std::uint64_t sample, std::vector<std::byte>& out) const;
  void read_frame(const StoredImages& images, std::uint64_t sample, std::span<std::byte> out) const;
  void verify(const StoredImages& images, std::uint64_t sample, std::vector<std::byte>& scratch) const;

  // The steps of open(). File offsets are positions in `head`.
  using ReadAt = std::function<void(std::uint64_t begin, std::span<std::byte> out)>;
  std::vector<std::byte> read_head(std::uint64_t first_bytes, const ReadAt& read);
  void open_file();
  void open_remote();
  void find_tensors();
  void check_head(std::span<const std::byte> head) const;
  void check_offsets(std::string_view name, std::span<const std::byte> offsets, std::uint64_t end,
                     bool exact) const;
  void check_frames(const StoredImages& images, std::span<const std::byte> offsets) const;
  void check_padding() const;
  void check_keys(std::span<const std::byte> head) const;
  void check_texts(std::span<const std::byte> head) const;
};

std::vector<std::byte> ShardReader::Impl::read_head(std::uint64_t first_bytes, const ReadAt& read) {
  const std::uint64_t file_size = identity.size_bytes;
  std::vector<std::byte> head(static_cast<std::size_t>(std::min(file_size, first_bytes)));
  read(0, head);
  const auto extend = [&](std::uint64_t size) {
    const std::size_t have = head.size();
    if (size <= have) return;
    head.resize(static_cast<std::size_t>(size));
    read(have, std::span(head).subspan(have));
  };
  try {
    const std::uint64_t json_end = safetensors_header_end(head, file_size);
    if (json_end - 8 <= kMaxShardHeaderBytes) extend(json_end);  // else parse_shard_header() refuses it
    header = parse_shard_header(head, file_size);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt && error.code() != ErrorCode::unsupported) throw;
    throw Error(error.code(), fmt::format("shard {}: {}", quoted(path), error.what()));
  }
  extend(header.head_end);
  head.resize(static_cast<std::size_t>(header.head_end));
  return head;
}

void ShardReader::Impl::find_tensors() {
  const auto begin_of = [&](const std::string& name) {
    const TensorInfo* const tensor = header.container.find(name);
    return tensor == nullptr ? 0 : header.container.data_begin + tensor->begin;
  };
  keys = begin_of("keys");
  keys_bytes = header.container.find("keys")->size_bytes();
  key_offsets = begin_of("key_offsets");
  const auto add = [&](StoredImages images) {
    images.checksums = begin_of(images.tensor("checksums"));
    images.offsets_name = images.tensor("frame_offsets");
    images.frame_offsets = begin_of(images.offsets_name);  // 0 without codec
    images.frame_checksums = begin_of(images.tensor("frame_checksums"));
    stored.push_back(std::move(images));
  };
  add({{}, header.spec, header.codec.kind, codec_of(header), header.images_begin, header.images_end});
  for (std::size_t i = 0; i < header.fields.size(); ++i) {
    const FieldSpec& field = header.fields[i];
    add({field.name, field.spec, field.codec.kind, Codec(field.codec, field.spec, field.normalization),
         header.field_ranges[i].begin, header.field_ranges[i].end});
  }
  const auto bytes_of = [&](std::string_view name) {
    const TensorInfo& tensor = *header.container.find(name);
    return mapped(header.container.data_begin + tensor.begin, tensor.size_bytes());
  };
  for (const ColumnSpec& spec : header.columns) {
    Column column{spec.dtype, spec.row_shape, spec.row_bytes(), bytes_of(spec.name), spec.kind, {}};
    if (spec.kind != ColumnKind::fixed) column.offsets = bytes_of(offsets_name(spec));
    columns.emplace(spec.name, std::move(column));
  }
}

// The digest and every table of offsets.
void ShardReader::Impl::check_head(std::span<const std::byte> head) const {
  const std::string_view json =
      as_text(head.subspan(8, static_cast<std::size_t>(header.container.data_begin) - 8));
  const auto digits_at = find_digest_digits(json);
  if (!digits_at || from_hex(json.substr(*digits_at, kDigestDigits)) != header.head_digest)
    corrupt("bytes before the images have changed since it was opened");
  if (const std::uint64_t found = digest_head(head, 8 + *digits_at); found != header.head_digest) {
    corrupt(
        fmt::format("the head's XXH3-64 is {}, its metadata say {}: bytes before the images have changed; "
                    "convert it again",
                    to_hex(found), to_hex(header.head_digest)));
  }
  const auto table = [&](std::uint64_t begin) {
    return head.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(header.samples + 1) * 8);
  };
  check_offsets("key_offsets", table(key_offsets), keys_bytes, false);
  for (const ColumnSpec& spec : header.columns) {
    if (spec.kind == ColumnKind::fixed) continue;
    const TensorInfo& offsets = *header.container.find(offsets_name(spec));
    check_offsets(quoted_excerpt(offsets.name), table(header.container.data_begin + offsets.begin),
                  header.container.find(spec.name)->shape[0], true);
  }
  for (const StoredImages& images : stored)
    if (images.framed()) check_frames(images, table(images.frame_offsets));
}

void ShardReader::Impl::check_offsets(std::string_view name, std::span<const std::byte> offsets,
                                      std::uint64_t end, bool exact) const {
  std::uint64_t before = 0;
  for (std::uint64_t i = 0; i <= header.samples; ++i) {
    const std::uint64_t offset = load_u64(offsets, static_cast<std::size_t>(i) * 8);
    if (i == 0 && offset != 0) corrupt(fmt::format("{}[0] is {}: it must be 0", name, offset));
    if (offset < before)
      corrupt(fmt::format("{}[{}] is {}, less than the {} before it", name, i, offset, before));
    if (offset > end) corrupt(fmt::format("{}[{}] is {}: there are only {}", name, i, offset, end));
    before = offset;
  }
  if (exact && before != end)
    corrupt(fmt::format("{}[{}] is {}: it must be {}", name, header.samples, before, end));
}

// Also checks that the stated size of a sample fits the bytes that are there.
void ShardReader::Impl::check_frames(const StoredImages& images, std::span<const std::byte> offsets) const {
  check_offsets(images.offsets_name, offsets, images.end - images.begin, true);
  const std::uint64_t least = images.codec.least_frame_bytes();
  for (std::size_t i = 0; i < header.samples; ++i) {
    const std::uint64_t size = load_u64(offsets, (i + 1) * 8) - load_u64(offsets, i * 8);
    if (size < least) {
      corrupt(fmt::format("{}the frame of sample {} has {} bytes, too few for the {} bytes of a sample",
                          images.place(), i, size, images.spec.size_bytes()));
    }
    if (images.kind == CodecSpec::Kind::packed && size % packed::kAlignment != 0) {
      corrupt(
          fmt::format("{}the frame of sample {} has {} bytes: with codec packed it must be a multiple of {}",
                      images.place(), i, size, packed::kAlignment));
    }
  }
}

// What no digest covers: the bytes behind the images of further fields.
void ShardReader::Impl::check_padding() const {
  for (const FieldSpec& field : header.fields) {
    const TensorInfo& padding = *header.container.find(field_tensor(field, "padding"));
    std::vector<std::byte> bytes(static_cast<std::size_t>(padding.size_bytes()));
    const std::uint64_t begin = header.container.data_begin + padding.begin;
    if (!remote || has_copy())
      copy(bytes, mapped(begin, bytes.size()));
    else
      remote->read_ahead(begin, bytes, begin + bytes.size());
    if (std::any_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte != std::byte{0}; }))
      corrupt(fmt::format("the padding behind field {} is not zero", quoted_excerpt(field.name)));
  }
}

// The offsets were checked.
void ShardReader::Impl::check_keys(std::span<const std::byte> head) const {
  const std::string_view text =
      as_text(head.subspan(static_cast<std::size_t>(keys), static_cast<std::size_t>(keys_bytes)));
  const auto offset = [&](std::uint64_t i) {
    return static_cast<std::size_t>(load_u64(head, static_cast<std::size_t>(key_offsets + i * 8)));
  };
  for (std::uint64_t i = 0; i < header.samples; ++i) {
    try {
      unescape_key(text.substr(offset(i), offset(i + 1) - offset(i)));
    } catch (const Error& error) {
      corrupt(fmt::format("sample {}: {}", i, error.what()));
    }
  }
  if (text.find_first_not_of('\0', offset(header.samples)) != std::string_view::npos)
    corrupt("the padding after the last key is not zero");
}

// The offsets were checked.
void ShardReader::Impl::check_texts(std::span<const std::byte> head) const {
  const auto begin_of = [&](std::string_view name) {
    return static_cast<std::size_t>(header.container.data_begin + header.container.find(name)->begin);
  };
  for (const ColumnSpec& spec : header.columns) {
    if (spec.kind != ColumnKind::text) continue;
    const std::string_view text = as_text(head.subspan(begin_of(spec.name)));
    const std::size_t offsets = begin_of(offsets_name(spec));
    for (std::size_t i = 0; i < header.samples; ++i) {
      const auto first = static_cast<std::size_t>(load_u64(head, offsets + i * 8));
      const auto last = static_cast<std::size_t>(load_u64(head, offsets + (i + 1) * 8));
      if (!is_utf8(text.substr(first, last - first)))
        corrupt(fmt::format("sample {}: the text of column {} is not UTF-8", i, quoted_excerpt(spec.name)));
    }
  }
}

bool ShardReader::Impl::has_head(int file) const {
  std::vector<std::byte> found(static_cast<std::size_t>(header.head_end));
  std::vector<std::byte> head(found.size());
  pread_all(file, found, 0, path);
  copy(head, mapped(0, head.size()));
  return found == head;
}

StoredSampleRange ShardReader::Impl::stored_sample(std::uint64_t number) const {
  const StoredImages& images = in_order(static_cast<std::size_t>(number / header.samples));
  const std::uint64_t sample = number % header.samples;
  const auto [begin, size] = stored_range(images, sample);
  return {begin, size, load_at(images.framed() ? images.frame_checksums : images.checksums, sample)};
}

std::uint64_t ShardReader::Impl::first_stored_from(std::uint64_t offset) const {
  std::uint64_t first = 0;
  std::uint64_t last = stored.size() * header.samples;
  while (first < last) {
    const std::uint64_t middle = first + (last - first) / 2;
    const StoredImages& images = in_order(static_cast<std::size_t>(middle / header.samples));
    if (stored_range(images, middle % header.samples).first < offset)
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
  for (std::uint64_t number = 0; number < stored.size() * header.samples; ++number) {
    if (proven && proven(number)) continue;
    const StoredSampleRange sample = stored_sample(number);
    bytes.resize(static_cast<std::size_t>(sample.size_bytes));
    pread_all(file, bytes, sample.begin, path);
    if (xxh3(bytes) != sample.digest) damaged.push_back({sample.begin, sample.size_bytes});
  }
  return damaged;
}

std::string ShardReader::Impl::change() const {
  if (remote) {  // what comes from the server is compared with its digests
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
  if (!remote || has_copy()) return;
  throw Error(
      ErrorCode::unsupported,
      fmt::format("{} is on a server, so its stored bytes are not in memory: use read() or read_frame()",
                  quoted(path)));
}

bool ShardReader::Impl::load_copy(std::span<std::byte> out, std::uint64_t begin, std::uint64_t digest) const {
  if (!has_copy() || !guarded_copy(out, mapped(begin, out.size()))) return false;
  doubt_changed_copy();
  return copied.load(std::memory_order_acquire) == CopyState::proven || xxh3(out) == digest;
}

// From a server, bytes count if they match their digest.
void ShardReader::Impl::load_stored(const StoredImages& images, std::uint64_t sample, std::uint64_t begin,
                                    std::span<std::byte> out) const {
  if (!remote) {
    copy(out, mapped(begin, out.size()));
    return check_unchanged();  // the rest of the page at which a file was cut reads as zeros
  }
  const std::uint64_t stated = load_at(images.framed() ? images.frame_checksums : images.checksums, sample);
  if (load_copy(out, begin, stated)) return;
  for (int attempt = 1;; ++attempt) {
    remote->read_ahead(begin, out, images.end);
    const std::uint64_t found = xxh3(out);
    if (found == stated) return;
    remote->forget_ahead();
    if (attempt == kRemoteAttempts)
      corrupt_sample(
          sample, fmt::format("{}its stored bytes have the XXH3-64 {}, not {}, in {} answers of the server: "
                              "they are damaged there; upload the shard again",
                              images.place(), to_hex(found), to_hex(stated), attempt));
  }
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

std::pair<std::uint64_t, std::uint64_t> ShardReader::Impl::stored_range(const StoredImages& images,
                                                                        std::uint64_t sample) const {
  check_index(sample);
  if (!images.framed()) {
    const std::uint64_t row = images.spec.size_bytes();
    return {images.begin + sample * row, row};
  }
  const auto [begin, end] =
      offsets_at(images.offsets_name.c_str(), images.frame_offsets, sample, images.end - images.begin);
  return {images.begin + begin, end - begin};
}

void ShardReader::Impl::load(const StoredImages& images, std::uint64_t sample, std::span<std::byte> out,
                             bool check_frame) const {
  const auto [begin, size] = stored_range(images, sample);
  if (!images.framed()) return load_stored(images, sample, begin, out);
  thread_local std::vector<std::byte> frame;
  frame.resize(static_cast<std::size_t>(size));
  load_stored(images, sample, begin, frame);
  if (check_frame) {
    const std::uint64_t found = xxh3(frame);
    const std::uint64_t stated = load_at(images.frame_checksums, sample);
    if (found != stated) {
      corrupt_sample(sample,
                     fmt::format("{}its stored frame has the XXH3-64 {}, not {}: the bytes have changed",
                                 images.place(), to_hex(found), to_hex(stated)));
    }
  }
  try {
    images.codec.decode(frame, out);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt) throw;
    corrupt_sample(sample, images.place() + error.what());
  }
}

void ShardReader::Impl::read(const StoredImages& images, std::uint64_t sample,
                             std::span<std::byte> out) const {
  check_index(sample);
  if (out.size() != images.spec.size_bytes()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a buffer of {} bytes for {}sample {} of shard {}: a sample has {}", out.size(),
                            images.place(), sample, quoted(path), images.spec.size_bytes()));
  }
  load(images, sample, out, false);
}

void ShardReader::Impl::read_frame(const StoredImages& images, std::uint64_t sample,
                                   std::vector<std::byte>& out) const {
  const auto [begin, size] = stored_range(images, sample);
  out.resize(static_cast<std::size_t>(size));
  load_stored(images, sample, begin, out);
}

void ShardReader::Impl::read_frame(const StoredImages& images, std::uint64_t sample,
                                   std::span<std::byte> out) const {
  const auto [begin, size] = stored_range(images, sample);
  if (out.size() != size)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a buffer of {} bytes for the frame of {}sample {} of shard {}: it has {}",
                            out.size(), images.place(), sample, quoted(path), size));
  load_stored(images, sample, begin, out);
}

void ShardReader::Impl::verify(const StoredImages& images, std::uint64_t sample,
                               std::vector<std::byte>& scratch) const {
  scratch.resize(static_cast<std::size_t>(images.spec.size_bytes()));
  load(images, sample, scratch, true);
  const std::uint64_t found = xxh3(scratch);
  const std::uint64_t stated = load_at(images.checksums, sample);
  if (found == stated) return;
  corrupt_sample(sample, fmt::format("{}its XXH3-64 is {}, not {}: the bytes have changed", images.place(),
                                     to_hex(found), to_hex(stated)));
}

FileIdentity file_identity(int descriptor, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) throw_errno("cannot read the size of", path, errno);
  if (!S_ISREG(status.st_mode))
    throw Error(ErrorCode::io, fmt::format("{} is not a regular file", quoted(path)));
  return {status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size)};
}

namespace {

std::unique_ptr<const RemoteFile> remote_file(const std::filesystem::path& path, std::uint64_t size_bytes) {
  const RemoteName at = split_remote(path.native());
  return std::make_unique<const RemoteFile>(RemoteFolder::open(at.folder), at.name, size_bytes);
}

}  // namespace

ShardReader ShardReader::open(const std::filesystem::path& path) {
  return shard::is_remote(path) ? open_remote(remote_file(path, 0), path) : open_in(nullptr, path);
}

ShardReader ShardReader::open(const std::filesystem::path& path, std::uint64_t size_bytes) {
  if (shard::is_remote(path)) return open_remote(remote_file(path, size_bytes), path);
  ShardReader reader = open_in(nullptr, path);
  if (reader.file_size_bytes() == size_bytes) return reader;
  throw Error(ErrorCode::corrupt,
              fmt::format("shard {}: it has {} bytes, not {}; restore it, or convert again", quoted(path),
                          reader.file_size_bytes(), size_bytes));
}

ShardReader ShardReader::open_in(std::shared_ptr<const UniqueFd> folder, const std::filesystem::path& path) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->folder = std::move(folder);
  if (impl->folder) {
    impl->file_name = path.filename().native();
  } else {  // this process may go to another folder
    std::error_code no_folder;
    impl->file_name = std::filesystem::absolute(path, no_folder).native();
    if (no_folder) impl->file_name = path.native();
  }
  impl->open_file();
  return ShardReader(std::move(impl));
}

ShardReader ShardReader::open_remote(std::unique_ptr<const RemoteFile> file,
                                     const std::filesystem::path& path) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->remote = std::move(file);
  impl->open_remote();
  return ShardReader(std::move(impl));
}

void ShardReader::Impl::open_file() {
  const UniqueFd fd = reopen(O_NONBLOCK);  // a pipe: refused, not waited for
  if (!fd) throw_errno("cannot open", path, errno);
  identity = file_identity(fd.get(), path);
  const std::vector<std::byte> head = read_head(
      kFirstReadBytes,
      [&](std::uint64_t begin, std::span<std::byte> out) { pread_all(fd.get(), out, begin, path); });
  mapping.emplace(fd.get(), identity.size_bytes, path);
  find_tensors();
  check_head(head);
}

// The head is kept in the local area. Bytes that were damaged on the way are requested again.
void ShardReader::Impl::open_remote() {
  identity.size_bytes = remote->size_bytes();
  mapping.emplace(remote->area().fd(), remote->offset(), identity.size_bytes, remote->area().folder());
  for (int attempt = 1;; ++attempt) {
    try {
      const std::vector<std::byte> head =
          read_head(remote->likely_head_bytes(),
                    [&](std::uint64_t begin, std::span<std::byte> out) { remote->read(begin, out); });
      stored.clear();
      columns.clear();
      find_tensors();
      check_head(head);
      return remote->keep(0, head);
    } catch (const Error& error) {
      const bool damaged = error.code() == ErrorCode::corrupt || error.code() == ErrorCode::unsupported;
      if (!damaged || attempt == kRemoteAttempts) throw;
    }
  }
}

ShardReader::ShardReader(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
ShardReader::ShardReader(ShardReader&&) noexcept = default;
ShardReader& ShardReader::operator=(ShardReader&&) noexcept = default;
ShardReader::~ShardReader() = default;

const std::filesystem::path& ShardReader::path() const noexcept { return impl_->path; }
const ShardHeader& ShardReader::header() const noexcept { return impl_->header; }
const Codec& ShardReader::codec() const noexcept { return impl_->stored.front().codec; }
std::uint64_t ShardReader::size() const noexcept { return impl_->header.samples; }
std::uint64_t ShardReader::file_size_bytes() const noexcept { return impl_->identity.size_bytes; }
const FileIdentity& ShardReader::identity() const noexcept { return impl_->identity; }
std::span<const std::byte> ShardReader::mapping() const noexcept {
  const auto bytes = impl_->mapping->bytes();
  return impl_->remote ? bytes.first(static_cast<std::size_t>(impl_->header.head_end)) : bytes;
}
bool ShardReader::is_remote() const noexcept { return impl_->remote != nullptr; }
const std::map<std::string, Column>& ShardReader::columns() const noexcept { return impl_->columns; }
const Column& ShardReader::column(std::string_view name) const {
  const auto found = impl_->columns.find(std::string(name));
  if (found != impl_->columns.end()) return found->second;
  std::string known;
  for (const auto& entry : impl_->columns)
    known += (known.empty() ? "" : ", ") + std::string(quoted_excerpt(entry.first));
  throw Error(ErrorCode::not_found, fmt::format("shard {} has no column {}; it has {}", quoted(impl_->path),
                                                quoted_excerpt(name), known));
}

std::string ShardReader::change() const { return impl_->change(); }
int ShardReader::reopen(int flags) const noexcept {
  if (!impl_->remote) return impl_->reopen(flags).release();
  errno = EREMOTE;
  return -1;
}
void ShardReader::check_unchanged() const { impl_->check_unchanged(); }

std::string ShardReader::key(std::uint64_t sample) const {
  impl_->check_index(sample);
  return impl_->key(sample);
}

std::uint64_t ShardReader::checksum(std::uint64_t sample) const {
  impl_->check_index(sample);
  return impl_->load_at(impl_->stored.front().checksums, sample);
}

void ShardReader::read_rows(const Column& column, std::uint64_t first, std::span<std::byte> out) const {
  if (column.kind != ColumnKind::fixed)
    throw Error(ErrorCode::unsupported,
                fmt::format("a column of shard {} is {}: its samples have different numbers of rows",
                            quoted(impl_->path), to_string(column.kind)));
  const std::uint64_t rows = column.row_bytes == 0 ? 0 : out.size() / column.row_bytes;
  if (rows * column.row_bytes != out.size() || first > size() || rows > size() - first) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} bytes of rows of {} bytes from sample {} of shard {}: it has {}", out.size(),
                            column.row_bytes, first, quoted(impl_->path), size()));
  }
  impl_->copy(out, column.bytes.subspan(static_cast<std::size_t>(first * column.row_bytes), out.size()));
}

std::int64_t ShardReader::label(std::uint64_t sample) const {
  impl_->check_index(sample);
  const Column& labels = impl_->columns.at("labels");
  if (labels.dtype != DType::i64 || !labels.row_shape.empty()) {
    throw Error(ErrorCode::unsupported,
                fmt::format("labels of shard {} are {} values per sample, not class ids: use columns()",
                            quoted(impl_->path), labels.row_bytes / size_bytes(labels.dtype)));
  }
  std::array<std::byte, 8> bytes{};
  read_rows(labels, sample, bytes);
  return static_cast<std::int64_t>(load_u64(bytes));
}

std::uint64_t ShardReader::stored_bytes(std::uint64_t sample) const {
  std::uint64_t bytes = 0;
  for (const StoredImages& images : impl_->stored) bytes += impl_->stored_range(images, sample).second;
  return bytes;
}

std::span<const std::byte> ShardReader::frame(std::uint64_t sample) const {
  impl_->require_local();
  const auto [begin, size] = impl_->stored_range(impl_->stored.front(), sample);
  return impl_->mapped(begin, size);
}

void ShardReader::read_frame(std::uint64_t sample, std::vector<std::byte>& out) const {
  impl_->read_frame(impl_->stored.front(), sample, out);
}

std::uint64_t ShardReader::frame_bytes(std::uint64_t sample) const {
  return impl_->stored_range(impl_->stored.front(), sample).second;
}

void ShardReader::read_frame(std::uint64_t sample, std::span<std::byte> out) const {
  impl_->read_frame(impl_->stored.front(), sample, out);
}

std::uint64_t ShardReader::field_frame_bytes(std::size_t field, std::uint64_t sample) const {
  return impl_->stored_range(impl_->field(field), sample).second;
}

void ShardReader::read_field_frame(std::size_t field, std::uint64_t sample, std::span<std::byte> out) const {
  impl_->read_frame(impl_->field(field), sample, out);
}

std::uint64_t ShardReader::stored_samples() const noexcept { return impl_->stored.size() * size(); }
StoredSampleRange ShardReader::stored_sample(std::uint64_t number) const {
  return impl_->stored_sample(number);
}
std::uint64_t ShardReader::first_stored_from(std::uint64_t offset) const {
  return impl_->first_stored_from(offset);
}
std::vector<FileRange> ShardReader::damaged_ranges(int file,
                                                   const std::function<bool(std::uint64_t)>& proven) const {
  return impl_->damaged_ranges(file, proven);
}

bool ShardReader::has_head(int file) const { return impl_->has_head(file); }
bool ShardReader::has_samples() const noexcept { return impl_->has_copy(); }
bool ShardReader::samples_mapped() const noexcept {
  return impl_->remote == nullptr || impl_->copied.load(std::memory_order_acquire) == CopyState::proven;
}
void ShardReader::adopt(int file, CopyState state) const {
  if (const std::uint64_t found = regular_file_size(file, impl_->path); found != file_size_bytes())
    throw Error(ErrorCode::io, fmt::format("the copy of shard {} has {} bytes, not {}", quoted(impl_->path),
                                           found, file_size_bytes()));
  impl_->mapping->replace(file, 0, impl_->path);
  impl_->copied.store(state, std::memory_order_release);
}
void ShardReader::adopt_named(int file, std::shared_ptr<const UniqueFd> folder, std::string name) const {
  struct stat now {};
  if (::fstat(file, &now) != 0) throw_errno("cannot look at", name, errno);
  impl_->named_copy.emplace(NamedCopy{std::move(folder), std::move(name), now});
  adopt(file, CopyState::proven);
}
void ShardReader::abandon() const {
  const RemoteFile& remote = *impl_->remote;
  impl_->copied.store(CopyState::none, std::memory_order_release);
  impl_->mapping->replace(remote.area().fd(), remote.offset(), remote.area().folder());
}

void ShardReader::read(std::uint64_t sample, std::span<std::byte> out) const {
  impl_->read(impl_->stored.front(), sample, out);
}

std::uint64_t ShardReader::field_checksum(std::size_t field, std::uint64_t sample) const {
  const StoredImages& images = impl_->field(field);
  impl_->check_index(sample);
  return impl_->load_at(images.checksums, sample);
}

std::span<const std::byte> ShardReader::field_frame(std::size_t field, std::uint64_t sample) const {
  impl_->require_local();
  const auto [begin, size] = impl_->stored_range(impl_->field(field), sample);
  return impl_->mapped(begin, size);
}

void ShardReader::read_field_frame(std::size_t field, std::uint64_t sample,
                                   std::vector<std::byte>& out) const {
  impl_->read_frame(impl_->field(field), sample, out);
}

const Codec& ShardReader::field_codec(std::size_t field) const { return impl_->field(field).codec; }

void ShardReader::read_field(std::size_t field, std::uint64_t sample, std::span<std::byte> out) const {
  impl_->read(impl_->field(field), sample, out);
}

std::size_t ShardReader::field_index(std::string_view name) const {
  const std::vector<FieldSpec>& fields = impl_->header.fields;
  if (const auto found = find_field(fields, name)) return *found;
  std::string known;
  for (const FieldSpec& field : fields)
    known += (known.empty() ? "" : ", ") + std::string(quoted_excerpt(field.name));
  throw Error(ErrorCode::not_found,
              fmt::format("shard {} has no image field {} beside the main one; it has {}",
                          quoted(impl_->path), quoted_excerpt(name), known.empty() ? "none" : known));
}

ShardReader::Rows ShardReader::rows_of(const Column& column, std::uint64_t sample) const {
  impl_->check_index(sample);
  if (column.kind == ColumnKind::fixed) return {sample, 1};
  const auto [begin, end] = impl_->offsets_at(
      "offsets of a column", static_cast<std::uint64_t>(column.offsets.data() - mapping().data()), sample,
      column.bytes.size() / column.row_bytes);
  return {begin, end - begin};
}

void ShardReader::read_column(const Column& column, std::uint64_t sample, std::vector<std::byte>& out) const {
  const Rows rows = rows_of(column, sample);
  out.resize(static_cast<std::size_t>(rows.count * column.row_bytes));
  impl_->copy(out, column.bytes.subspan(static_cast<std::size_t>(rows.first * column.row_bytes), out.size()));
}

std::string ShardReader::text(const Column& column, std::uint64_t sample) const {
  if (column.kind != ColumnKind::text)
    throw Error(ErrorCode::unsupported, fmt::format("a column of shard {} is {}, not text",
                                                    quoted(impl_->path), to_string(column.kind)));
  std::vector<std::byte> bytes;
  read_column(column, sample, bytes);
  if (!is_utf8(as_text(bytes))) impl_->corrupt_sample(sample, "the text of a column is not UTF-8");
  return std::string(as_text(bytes));
}

void ShardReader::verify_head() const {
  impl_->check_unchanged();
  std::vector<std::byte> head(static_cast<std::size_t>(impl_->header.head_end));
  impl_->copy(head, impl_->mapped(0, head.size()));
  impl_->check_head(head);
  impl_->check_padding();
  impl_->check_keys(head);
  impl_->check_texts(head);
}

void ShardReader::verify_sample(std::uint64_t sample, std::vector<std::byte>& scratch) const {
  impl_->check_index(sample);
  for (auto images = impl_->stored.rbegin(); images != impl_->stored.rend(); ++images)
    impl_->verify(*images, sample, scratch);
}

}  // namespace shard
