#include "shard/shard_reader.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "format/bytes.hpp"
#include "format/file_io.hpp"
#include "format/mapped_file.hpp"
#include "format/packed_frame.hpp"
#include "format/shard_profile.hpp"
#include "shard/checksum.hpp"
#include "shard/codec.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"

namespace shard {
namespace {

constexpr std::uint64_t kFirstReadBytes = 64 * 1024;

}  // namespace

// The head (everything before the images) is read into memory, so that what was checked is what is used,
// whatever happens to the file; samples are read with pread, which reports a file cut short; frame() and
// mapping() are views of the mapping.
struct ShardReader::Impl {
  std::filesystem::path path;
  UniqueFd fd;
  std::uint64_t file_size = 0;
  std::vector<std::byte> head;
  ShardHeader header;
  std::optional<SampleCodec> codec;  // of the header
  std::map<std::string, Column> columns;
  std::span<const std::byte> keys, key_offsets, checksums, frame_offsets, frame_checksums;  // into head
  std::optional<MappedFile> mapping;

  [[noreturn]] void corrupt(const std::string& why) const {
    throw Error(ErrorCode::corrupt, fmt::format("shard \"{}\": {}", path.native(), why));
  }
  [[noreturn]] void corrupt_sample(std::uint64_t sample, const std::string& why) const {
    corrupt(fmt::format("sample {} (\"{}\"): {}", sample, key_text(sample), why));
  }

  std::string_view key_text(std::uint64_t sample) const {
    const std::uint64_t begin = offset_at(key_offsets, sample);
    return as_text(keys).substr(static_cast<std::size_t>(begin),
                                static_cast<std::size_t>(offset_at(key_offsets, sample + 1) - begin));
  }

  static std::uint64_t offset_at(std::span<const std::byte> offsets, std::uint64_t i) {
    return load_u64(offsets, static_cast<std::size_t>(i) * 8);
  }

  void check_index(std::uint64_t sample) const {
    if (sample < header.samples) return;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("sample {} of shard \"{}\": it has {}", sample, path.native(), header.samples));
  }

  void read_head();
  void check_head_digest(std::uint64_t found) const;
  std::span<const std::byte> tensor_bytes(const TensorInfo& tensor) const;
  void find_views();
  void check_offsets(std::string_view name, std::span<const std::byte> offsets, std::uint64_t end,
                     bool exact) const;
  void check_frames() const;
  // File range of a stored sample.
  std::pair<std::uint64_t, std::uint64_t> stored_range(std::uint64_t sample) const;
  // The sample into `out`, of spec.size_bytes(). The stored frame is held against its checksum when asked.
  void load(std::uint64_t sample, std::span<std::byte> out, bool check_frame) const;
};

void ShardReader::Impl::read_head() {
  head.resize(static_cast<std::size_t>(std::min(file_size, kFirstReadBytes)));
  pread_all(fd.get(), head, 0, path);
  const auto extend = [&](std::uint64_t size) {
    const std::size_t have = head.size();
    if (size <= have) return;
    head.resize(static_cast<std::size_t>(size));
    pread_all(fd.get(), std::span(head).subspan(have), have, path);
  };
  const std::uint64_t json_end = safetensors_header_end(head, file_size);
  if (json_end - 8 <= kMaxShardHeaderBytes) extend(json_end);  // else refused by what follows
  header = parse_shard_header(head, file_size);
  extend(header.images_begin);
  head.resize(static_cast<std::size_t>(header.images_begin));
  head.shrink_to_fit();
}

void ShardReader::Impl::check_head_digest(std::uint64_t found) const {
  if (found == header.head_digest) return;
  corrupt(fmt::format(
      "the head's XXH3-64 is {}, its metadata say {}: bytes before the images have changed; convert it again",
      to_hex(found), to_hex(header.head_digest)));
}

std::span<const std::byte> ShardReader::Impl::tensor_bytes(const TensorInfo& tensor) const {
  return std::span(head).subspan(static_cast<std::size_t>(header.tensors.data_begin + tensor.begin),
                                 static_cast<std::size_t>(tensor.size_bytes()));
}

void ShardReader::Impl::find_views() {
  for (const TensorInfo& tensor : header.tensors.tensors) {
    if (&tensor == &header.tensors.tensors.back()) break;  // the images
    const auto bytes = tensor_bytes(tensor);
    if (tensor.name == "keys") keys = bytes;
    if (tensor.name == "key_offsets") key_offsets = bytes;
    if (tensor.name == "checksums") checksums = bytes;
    if (tensor.name == "frame_offsets") frame_offsets = bytes;
    if (tensor.name == "frame_checksums") frame_checksums = bytes;
    if (is_reserved_tensor(tensor.name)) continue;
    Column column;
    column.dtype = tensor.dtype;
    column.row_shape.assign(tensor.shape.begin() + 1, tensor.shape.end());
    column.row_bytes = tensor.size_bytes() / header.samples;
    column.bytes = bytes;
    columns.emplace(tensor.name, std::move(column));
  }
}

void ShardReader::Impl::check_offsets(std::string_view name, std::span<const std::byte> offsets,
                                      std::uint64_t end, bool exact) const {
  std::uint64_t before = 0;
  for (std::uint64_t i = 0; i <= header.samples; ++i) {
    const std::uint64_t offset = offset_at(offsets, i);
    if (i == 0 && offset != 0) corrupt(fmt::format("{}[0] is {}: it must be 0", name, offset));
    if (offset < before)
      corrupt(fmt::format("{}[{}] is {}, less than the {} before it", name, i, offset, before));
    if (offset > end) corrupt(fmt::format("{}[{}] is {}: only {} bytes are there", name, i, offset, end));
    before = offset;
  }
  if (exact && before != end)
    corrupt(fmt::format("{}[{}] is {}: it must be {}", name, header.samples, before, end));
}

// Also holds the size of a sample, which is only stated, against the bytes that are there.
void ShardReader::Impl::check_frames() const {
  check_offsets("frame_offsets", frame_offsets, header.images_end - header.images_begin, true);
  const std::uint64_t least = codec->least_frame_bytes();
  for (std::uint64_t i = 0; i < header.samples; ++i) {
    const std::uint64_t size = offset_at(frame_offsets, i + 1) - offset_at(frame_offsets, i);
    if (size < least) {
      corrupt(fmt::format("the frame of sample {} has {} bytes, too few for the {} bytes of a sample", i,
                          size, header.spec.size_bytes()));
    }
    if (header.codec.kind == Codec::Kind::packed && size % packed::kAlignment != 0) {
      corrupt(
          fmt::format("the frame of sample {} has {} bytes: with codec packed it must be a multiple of {}", i,
                      size, packed::kAlignment));
    }
  }
}

std::pair<std::uint64_t, std::uint64_t> ShardReader::Impl::stored_range(std::uint64_t sample) const {
  check_index(sample);
  if (header.codec.kind == Codec::Kind::none) {
    const std::uint64_t row = header.spec.size_bytes();
    return {header.images_begin + sample * row, row};
  }
  const std::uint64_t begin = offset_at(frame_offsets, sample);
  return {header.images_begin + begin, offset_at(frame_offsets, sample + 1) - begin};
}

void ShardReader::Impl::load(std::uint64_t sample, std::span<std::byte> out, bool check_frame) const {
  const auto [begin, size] = stored_range(sample);
  if (header.codec.kind == Codec::Kind::none) return pread_all(fd.get(), out, begin, path);
  thread_local std::vector<std::byte> frame;
  frame.resize(static_cast<std::size_t>(size));
  pread_all(fd.get(), frame, begin, path);
  if (check_frame) {
    const std::uint64_t found = xxh3(frame);
    const std::uint64_t stated = offset_at(frame_checksums, sample);
    if (found != stated) {
      corrupt_sample(sample,
                     fmt::format("its stored frame has the XXH3-64 {}, not {}: the bytes have changed",
                                 to_hex(found), to_hex(stated)));
    }
  }
  try {
    codec->decode(frame, out);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt) throw;
    corrupt_sample(sample, error.what());
  }
}

ShardReader ShardReader::open(const std::filesystem::path& path) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->fd = open_read(path);
  impl->file_size = regular_file_size(impl->fd.get(), path);
  try {
    impl->read_head();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt && error.code() != ErrorCode::unsupported) throw;
    throw Error(error.code(), fmt::format("shard \"{}\": {}", path.native(), error.what()));
  }
  const std::size_t json_bytes = static_cast<std::size_t>(impl->header.tensors.data_begin) - 8;
  const auto digits_at =
      find_digest_digits(as_text(std::span<const std::byte>(impl->head).subspan(8, json_bytes)));
  impl->check_head_digest(digest_head(impl->head, 8 + digits_at.value()));
  impl->find_views();
  impl->check_offsets("key_offsets", impl->key_offsets, impl->keys.size(), false);
  impl->codec.emplace(impl->header.codec, impl->header.spec, impl->header.normalization);
  if (impl->header.codec.kind != Codec::Kind::none) impl->check_frames();
  impl->mapping.emplace(impl->fd.get(), impl->file_size, path);
  return ShardReader(std::move(impl));
}

ShardReader::ShardReader(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
ShardReader::ShardReader(ShardReader&&) noexcept = default;
ShardReader& ShardReader::operator=(ShardReader&&) noexcept = default;
ShardReader::~ShardReader() = default;

const std::filesystem::path& ShardReader::path() const noexcept { return impl_->path; }
const ShardHeader& ShardReader::header() const noexcept { return impl_->header; }
const SampleCodec& ShardReader::codec() const noexcept { return *impl_->codec; }
std::uint64_t ShardReader::size() const noexcept { return impl_->header.samples; }
std::uint64_t ShardReader::file_size_bytes() const noexcept { return impl_->file_size; }
int ShardReader::descriptor() const noexcept { return impl_->fd.get(); }
std::span<const std::byte> ShardReader::mapping() const noexcept { return impl_->mapping->bytes(); }
const std::map<std::string, Column>& ShardReader::columns() const noexcept { return impl_->columns; }

std::string_view ShardReader::key(std::uint64_t sample) const {
  impl_->check_index(sample);
  return impl_->key_text(sample);
}

std::uint64_t ShardReader::checksum(std::uint64_t sample) const {
  impl_->check_index(sample);
  return Impl::offset_at(impl_->checksums, sample);
}

std::int64_t ShardReader::label(std::uint64_t sample) const {
  impl_->check_index(sample);
  const Column& labels = impl_->columns.at("labels");
  if (labels.dtype != DType::i64) {
    throw Error(ErrorCode::unsupported,
                fmt::format("labels of shard \"{}\" are {} values a sample, not class ids: use columns()",
                            impl_->path.native(), labels.row_bytes / size_bytes(labels.dtype)));
  }
  return static_cast<std::int64_t>(load_u64(labels.bytes, static_cast<std::size_t>(sample) * 8));
}

std::span<const std::byte> ShardReader::frame(std::uint64_t sample) const {
  const auto [begin, size] = impl_->stored_range(sample);
  return mapping().subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(size));
}

void ShardReader::read(std::uint64_t sample, std::span<std::byte> out) const {
  impl_->check_index(sample);
  if (out.size() != impl_->header.spec.size_bytes()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a buffer of {} bytes for sample {} of shard \"{}\": a sample has {}", out.size(),
                            sample, impl_->path.native(), impl_->header.spec.size_bytes()));
  }
  impl_->load(sample, out, false);
}

void ShardReader::verify_head() const {
  std::vector<std::byte> again(impl_->head.size());
  pread_all(impl_->fd.get(), again, 0, impl_->path);
  if (again != impl_->head) impl_->corrupt("bytes before the images have changed since it was opened");
  for (std::uint64_t i = 0; i < size(); ++i) {
    try {
      unescape_key(impl_->key_text(i));
    } catch (const Error& error) {
      impl_->corrupt(fmt::format("sample {}: {}", i, error.what()));
    }
  }
  const auto padding =
      impl_->keys.subspan(static_cast<std::size_t>(Impl::offset_at(impl_->key_offsets, size())));
  if (std::any_of(padding.begin(), padding.end(), [](std::byte b) { return b != std::byte{0}; })) {
    impl_->corrupt("the padding after the last key is not zero");
  }
}

void ShardReader::verify_sample(std::uint64_t sample, std::vector<std::byte>& scratch) const {
  impl_->check_index(sample);
  scratch.resize(static_cast<std::size_t>(impl_->header.spec.size_bytes()));
  impl_->load(sample, scratch, true);
  const std::uint64_t found = xxh3(scratch);
  if (found == checksum(sample)) return;
  impl_->corrupt_sample(sample, fmt::format("its XXH3-64 is {}, not {}: the bytes have changed",
                                            to_hex(found), to_hex(checksum(sample))));
}

}  // namespace shard
