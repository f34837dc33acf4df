// Opening a shard: everything before its images is read, checked and dropped.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "base/files/file_io.hpp"
#include "base/text/quote.hpp"
#include "base/text/utf8.hpp"
#include "format/shard/shard_profile.hpp"
#include "format/shard/shard_reader_impl.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"
#include "shard/remote.hpp"

namespace shard {

namespace {

constexpr std::uint64_t kFirstReadBytes = 64 * 1024;
constexpr std::uint64_t kHeadStepBytes = std::uint64_t{64} << 20U;

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

std::vector<std::byte> ShardReader::Impl::read_head(std::uint64_t first_bytes, const ReadAt& read) {
  const std::uint64_t file_size = identity.size_bytes;
  std::vector<std::byte> head(static_cast<std::size_t>(std::min(file_size, first_bytes)));
  read(0, head);
  const auto extend = [&](std::uint64_t size) {
    while (head.size() < size) {  // by steps: no memory for bytes that a header claims and that do not come
      const std::size_t have = head.size();
      head.resize(static_cast<std::size_t>(std::min<std::uint64_t>(size, have + kHeadStepBytes)));
      read(have, std::span(head).subspan(have));
    }
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

std::uint64_t ShardReader::Impl::tensor_begin(std::string_view name) const {
  const TensorInfo* const tensor = header.container.find(name);
  return tensor == nullptr ? 0 : header.container.data_begin + tensor->begin;
}

void ShardReader::Impl::find_tensors() {
  keys = tensor_begin("keys");
  keys_bytes = header.container.find("keys")->size_bytes();
  key_offsets = tensor_begin("key_offsets");
  images.push_back(StoredImages(*this, {}, header.spec, header.largest.front(), header.codec,
                                codec_of(header), {header.images_begin, header.images_end}));
  for (std::size_t i = 0; i < header.fields.size(); ++i) {
    const FieldSpec& field = header.fields[i];
    images.push_back(StoredImages(*this, field.name, field.spec, header.largest[i + 1], field.codec,
                                  Codec(field.codec, field.spec, field.normalization),
                                  header.field_ranges[i]));
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
  for (const StoredImages& field : images)
    if (field.framed_) field.check_frames(head);
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
                                     const std::filesystem::path& path, int copy) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->remote = std::move(file);
  impl->open_remote(copy);
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
void ShardReader::Impl::open_remote(int copy) {
  identity.size_bytes = remote->size_bytes();
  for (int attempt = 1;; ++attempt) {
    try {
      const std::vector<std::byte> head =
          read_head(remote->likely_head_bytes(), [&](std::uint64_t begin, std::span<std::byte> out) {
            copy >= 0 ? pread_all(copy, out, begin, path) : remote->read(begin, out);
          });
      images.clear();
      columns.clear();
      mapping.emplace(remote->area().fd(), remote->keep_head(head), identity.size_bytes,
                      remote->area().folder());
      mapping->clear(round_up(header.head_end, MappedFile::page_bytes()));
      find_tensors();
      return check_head(head);
    } catch (const Error& error) {
      const bool damaged = error.code() == ErrorCode::corrupt || error.code() == ErrorCode::unsupported;
      if (!damaged || attempt == kRemoteAttempts) throw;
    }
  }
}

}  // namespace shard
