// Codec zstd: one zstd frame per sample (RFC 8878), with the content size in its header and no dictionary.
// The only file that names zstd.
#include <zstd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "format/codec/codec_filter.hpp"
#include "format/codec/codecs.hpp"
#include "format/codec/scratch_bytes.hpp"
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

// The least that a frame of `content_bytes` can take: a block of at most 128 KiB takes at least 4 bytes (RFC
// 8878, 3.1.1.2).
constexpr std::uint64_t zstd_least_frame_bytes(std::uint64_t content_bytes) noexcept {
  return content_bytes / 32768;
}

// Each thread keeps its own context.
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

// Throws corrupt, saying why, unless `frame` is exactly one frame that states `content_bytes` of content and
// has blocks for as many. Reads only the headers: to be called before anything is allocated for the content.
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

// Fills `out` from a frame that must hold exactly out.size() bytes and end at frame.end().
void zstd_decompress(std::span<const std::byte> frame, std::span<std::byte> out) {
  thread_local const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  if (!context) throw Error(ErrorCode::resource, "no memory for a zstd context");
  zstd_check_frame(frame, out.size());
  const std::size_t size =
      ZSTD_decompressDCtx(context.get(), out.data(), out.size(), frame.data(), frame.size());
  if (ZSTD_isError(size) != 0U) corrupt(fmt::format("is damaged: {}", ZSTD_getErrorName(size)));
  if (size != out.size()) corrupt(fmt::format("holds {} bytes: a sample has {}", size, out.size()));
}

class ZstdCoder final : public Coder {
 public:
  ZstdCoder(int level, const SampleSpec& spec) : level_(level), filtered_(is_filtered(spec)) {}

  std::vector<std::byte> encode(FrameSpec& of, std::span<const std::byte> sample) const override {
    if (!filtered_) return zstd_compress(sample, level_);
    ScratchBytes bytes(sample.size());
    filter_sample(of.sample, sample, std::as_writable_bytes(bytes.values()));
    return zstd_compress(std::as_bytes(bytes.values()), level_);
  }
  void decode(const FrameSpec& of, std::span<const std::byte> frame,
              std::span<std::byte> sample) const override {
    if (!filtered_) return zstd_decompress(frame, sample);
    zstd_check_frame(frame, sample.size());  // before memory of that size is taken
    ScratchBytes bytes(sample.size());
    zstd_decompress(frame, std::as_writable_bytes(bytes.values()));
    unfilter_sample(of.sample, std::as_bytes(bytes.values()), sample);
  }
  std::uint64_t least_frame_bytes(const FrameSpec& of) const noexcept override {
    return std::max<std::uint64_t>(1, zstd_least_frame_bytes(of.sample.size_bytes()));
  }

 private:
  int level_;
  bool filtered_;
};

}  // namespace

std::shared_ptr<const Coder> make_zstd_coder(const CodecSpec& codec, const SampleSpec& spec,
                                             const Normalization& /*normalization*/) {
  return std::make_shared<ZstdCoder>(codec.level, spec);
}

}  // namespace shard
