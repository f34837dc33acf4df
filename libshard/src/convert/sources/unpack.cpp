#include "convert/sources/unpack.hpp"

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "base/files/file_io.hpp"
#include "base/text/quote.hpp"
#include "shard/error.hpp"

namespace shard::convert {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{256} << 10U;

void check_space(const std::filesystem::path& folder, std::uint64_t size_bytes) {
  struct statvfs info {};
  if (::statvfs(folder.c_str(), &info) != 0) return;
  const std::uint64_t free = std::uint64_t{info.f_bavail} * info.f_frsize;
  if (free < size_bytes)
    throw Error(
        ErrorCode::resource,
        fmt::format(
            "takes {} bytes when it is unpacked, and {} has {} free: set TMPDIR to a folder with more, "
            "or unpack it first",
            size_bytes, quoted(folder), free));
}

}  // namespace

struct Unpacker::Impl {
  const OpenArchive& file;
  std::uint64_t at;
  std::uint64_t end;
  Packed kind;
  z_stream stream{};
  std::vector<std::byte> input = std::vector<std::byte>(kPieceBytes);
  bool finished = false;
  std::uint32_t checksum = 0;

  Impl(const OpenArchive& from, std::uint64_t offset, std::uint64_t size_bytes, Packed packed)
      : file(from), at(offset), end(offset + size_bytes), kind(packed) {}

  bool refill() {
    if (stream.avail_in > 0) return true;
    const auto some = static_cast<std::size_t>(std::min<std::uint64_t>(input.size(), end - at));
    const std::size_t got = file.read(at, std::span(input).first(some));
    at += got;
    stream.next_in = reinterpret_cast<Bytef*>(input.data());
    stream.avail_in = static_cast<uInt>(got);
    return got > 0;
  }

  // Behind the end of a stream: gzip files may be joined, and padded with zeros.
  void next_stream() {
    if (kind == Packed::deflate) {
      finished = true;
      return;
    }
    while (refill() && *stream.next_in == 0) {
      ++stream.next_in;
      --stream.avail_in;
    }
    if (stream.avail_in == 0)
      finished = true;
    else if (inflateReset(&stream) != Z_OK)
      throw Error(ErrorCode::corrupt, "is damaged: zlib cannot go on");
  }
};

Unpacker::Unpacker(const OpenArchive& file, std::uint64_t offset, std::uint64_t size_bytes, Packed kind)
    : impl_(std::make_unique<Impl>(file, offset, size_bytes, kind)) {
  constexpr int kGzip = 16;
  if (inflateInit2(&impl_->stream, kind == Packed::gzip ? MAX_WBITS + kGzip : -MAX_WBITS) != Z_OK)
    throw Error(ErrorCode::resource, "no memory to unpack it");
}

Unpacker::~Unpacker() { inflateEnd(&impl_->stream); }

std::size_t Unpacker::read(std::span<std::byte> out) {
  Impl& state = *impl_;
  std::size_t filled = 0;
  while (filled < out.size() && !state.finished) {
    const bool more = state.refill();
    const auto room = std::min<std::size_t>(out.size() - filled, std::numeric_limits<uInt>::max());
    state.stream.next_out = reinterpret_cast<Bytef*>(out.data() + filled);
    state.stream.avail_out = static_cast<uInt>(room);
    const int result = inflate(&state.stream, Z_NO_FLUSH);
    filled += room - state.stream.avail_out;
    if (result == Z_STREAM_END)
      state.next_stream();
    else if (result == Z_MEM_ERROR)
      throw Error(ErrorCode::resource, "no memory to unpack it");
    else if (result != Z_OK && result != Z_BUF_ERROR)
      throw Error(ErrorCode::corrupt, fmt::format("is damaged: {}", state.stream.msg == nullptr
                                                                        ? "its compressed bytes are not valid"
                                                                        : state.stream.msg));
    else if (!more && state.stream.avail_in == 0 && state.stream.avail_out > 0)
      throw Error(ErrorCode::corrupt, "is cut off: its compressed bytes end too early");
  }
  for (std::size_t at = 0; at < filled;) {
    const auto some = std::min<std::size_t>(filled - at, std::numeric_limits<uInt>::max());
    state.checksum = static_cast<std::uint32_t>(
        crc32(state.checksum, reinterpret_cast<const Bytef*>(out.data() + at), static_cast<uInt>(some)));
    at += some;
  }
  return filled;
}

std::uint32_t Unpacker::checksum() const noexcept { return impl_->checksum; }

std::uint64_t Unpacker::most_bytes(std::uint64_t packed_bytes) noexcept {
  constexpr std::uint64_t kMost = 1032;
  return packed_bytes > (UINT64_MAX - kMost) / kMost ? UINT64_MAX : packed_bytes * kMost + kMost;
}

std::shared_ptr<const OpenArchive> unpack_file(Unpacker& unpacker, std::span<const std::byte> begin,
                                               std::uint64_t size_bytes,
                                               std::optional<std::uint32_t> checksum) {
  const std::filesystem::path folder = temporary_folder();
  check_space(folder, size_bytes);
  UniqueFd file = open_unnamed(folder);
  std::uint64_t at = std::min<std::uint64_t>(begin.size(), size_bytes);
  pwrite_all(file.get(), begin.first(static_cast<std::size_t>(at)), 0, folder);
  std::vector<std::byte> piece(kPieceBytes);
  bool more = begin.size() > size_bytes;
  while (!more) {
    const std::size_t got = unpacker.read(piece);
    more = got > size_bytes - at;
    if (got == 0 || more) break;
    pwrite_all(file.get(), std::span(piece).first(got), at, folder);
    at += got;
  }
  if (more || at != size_bytes)
    throw Error(ErrorCode::corrupt, fmt::format("is damaged: {} than the {} bytes that its header says",
                                                more ? "more" : "fewer", size_bytes));
  if (checksum && *checksum != unpacker.checksum())
    throw Error(ErrorCode::corrupt, fmt::format("is damaged: its checksum is {:08x} instead of {:08x}",
                                                unpacker.checksum(), *checksum));
  return std::make_shared<const OpenArchive>(folder, std::move(file), size_bytes);
}

}  // namespace shard::convert
