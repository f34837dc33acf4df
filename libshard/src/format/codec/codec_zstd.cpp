#include "format/codec/codec_zstd.hpp"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "shard/error.hpp"

namespace shard {
namespace {

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const noexcept { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
};

// The library may also read the formats before RFC 8878, and skippable frames: ours begin with this.
constexpr std::array<std::byte, 4> kMagic{std::byte{0x28}, std::byte{0xb5}, std::byte{0x2f}, std::byte{0xfd}};

[[noreturn]] void corrupt(const std::string& why) { throw Error(ErrorCode::corrupt, "zstd frame " + why); }

}  // namespace

std::vector<std::byte> zstd_compress(std::span<const std::byte> sample, int level) {
  thread_local const std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  if (!context) throw Error(ErrorCode::resource, "no memory for a zstd context");
  std::vector<std::byte> frame(ZSTD_compressBound(sample.size()));
  const std::size_t size =
      ZSTD_compressCCtx(context.get(), frame.data(), frame.size(), sample.data(), sample.size(), level);
  if (ZSTD_isError(size) != 0U) {
    throw Error(ErrorCode::resource,
                fmt::format("zstd cannot compress {} bytes: {}", sample.size(), ZSTD_getErrorName(size)));
  }
  frame.resize(size);
  frame.shrink_to_fit();  // frames may wait for their turn
  return frame;
}

void zstd_check_frame(std::span<const std::byte> frame, std::uint64_t content_bytes) {
  if (frame.size() < kMagic.size() || !std::equal(kMagic.begin(), kMagic.end(), frame.begin())) {
    corrupt("does not begin with the magic number of zstd");
  }
  const unsigned long long stated = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (stated == ZSTD_CONTENTSIZE_ERROR) corrupt("has no valid frame header");
  if (stated == ZSTD_CONTENTSIZE_UNKNOWN) corrupt("does not state its content size");
  if (stated != content_bytes) {
    corrupt(fmt::format("states {} bytes of content: a sample has {}", stated, content_bytes));
  }
  const std::size_t stored = ZSTD_findFrameCompressedSize(frame.data(), frame.size());
  if (ZSTD_isError(stored) != 0U) corrupt(fmt::format("is damaged: {}", ZSTD_getErrorName(stored)));
  if (stored != frame.size()) corrupt(fmt::format("ends after {} of {} stored bytes", stored, frame.size()));
  if (frame.size() < zstd_least_frame_bytes(content_bytes)) {
    corrupt(fmt::format("has {} bytes, too few for the {} bytes of a sample", frame.size(), content_bytes));
  }
}

void zstd_decompress(std::span<const std::byte> frame, std::span<std::byte> out) {
  thread_local const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  if (!context) throw Error(ErrorCode::resource, "no memory for a zstd context");
  zstd_check_frame(frame, out.size());
  const std::size_t size =
      ZSTD_decompressDCtx(context.get(), out.data(), out.size(), frame.data(), frame.size());
  if (ZSTD_isError(size) != 0U) corrupt(fmt::format("is damaged: {}", ZSTD_getErrorName(size)));
  if (size != out.size()) corrupt(fmt::format("holds {} bytes: a sample has {}", size, out.size()));
}

}  // namespace shard
