#include "convert/engine/cached_sample.hpp"

#include "base/bytes.hpp"

#include <utility>

namespace shard::convert {

namespace {

constexpr std::size_t kStoredHeadBytes = 24;
constexpr std::size_t kStoredImageBytes = 40;
constexpr std::uint32_t kHasInputDigest = 1;
constexpr std::uint32_t kIsReject = 2;
constexpr std::uint32_t kMostImages = 4096;
constexpr std::uint32_t kJpegUseCount = static_cast<std::uint32_t>(words_of(JpegUse{}).size());

bool is_frame(const jpeg::FrameFile& file) noexcept { return file.bytes != 0; }

}  // namespace

SamplePieces serialize_sample(const CachedSample& sample) {
  SamplePieces result;
  const std::size_t images = sample.reject ? 0 : sample.images.size();
  std::vector<std::byte>& heads = result.heads;
  heads.resize(kStoredHeadBytes + images * kStoredImageBytes);
  std::uint32_t warnings = 0;
  for (std::size_t i = 0; i < image::kWarnings; ++i)
    if (sample.warnings.has(static_cast<image::Warning>(i))) warnings |= 1U << i;
  store_u32(heads, 0, (sample.digest ? kHasInputDigest : 0U) | (sample.reject ? kIsReject : 0U));
  store_u32(heads, 4, warnings);
  store_u64(heads, 8, sample.digest.value_or(0));
  store_u32(heads, 16, sample.jpeg ? 1 + static_cast<std::uint32_t>(*sample.jpeg) : 0);
  store_u32(heads, 20, static_cast<std::uint32_t>(sample.reject ? sample.reject->size() : images));
  result.pieces.push_back(std::span(heads).first(kStoredHeadBytes));
  if (sample.reject) result.pieces.push_back(as_byte_span(*sample.reject));
  std::size_t at = kStoredHeadBytes;
  for (std::size_t i = 0; i < images; ++i) {
    const SampleValues& image = sample.images[i];
    const SampleValues::Frame frame = image.frame.value_or(SampleValues::Frame{});
    store_u32(heads, at, image.height);
    store_u32(heads, at + 4, image.width);
    store_u64(heads, at + 8, image.bytes.size());
    store_u32(heads, at + 16, frame.file.bytes);
    store_u32(heads, at + 20, frame.file.factors);
    store_u32(heads, at + 24, frame.file.size);
    store_u32(heads, at + 28, frame.file.orientation);
    store_u64(heads, at + 32, frame.checksum);
    result.pieces.push_back(std::span(heads).subspan(at, kStoredImageBytes));
    result.pieces.push_back(image.bytes);
    at += kStoredImageBytes;
  }
  return result;
}

std::optional<CachedSample> parse_sample(std::span<const std::byte> bytes) {
  if (bytes.size() < kStoredHeadBytes) return std::nullopt;
  CachedSample sample;
  const std::uint32_t flags = load_u32(bytes, 0);
  const std::uint32_t warnings = load_u32(bytes, 4);
  const std::uint32_t use = load_u32(bytes, 16);
  const std::uint32_t count = load_u32(bytes, 20);
  if (flags > (kHasInputDigest | kIsReject) || warnings >> image::kWarnings != 0 || use > kJpegUseCount)
    return std::nullopt;
  if ((flags & kHasInputDigest) != 0) sample.digest = load_u64(bytes, 8);
  std::size_t at = kStoredHeadBytes;
  if ((flags & kIsReject) != 0) {
    if (bytes.size() - at != count) return std::nullopt;
    sample.reject = std::string(as_text(bytes.subspan(at)));
    return sample;
  }
  for (std::size_t i = 0; i < image::kWarnings; ++i)
    if ((warnings >> i & 1U) != 0) sample.warnings.add(static_cast<image::Warning>(i));
  if (use != 0) sample.jpeg = static_cast<JpegUse>(use - 1);
  if (count == 0 || count > kMostImages) return std::nullopt;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (bytes.size() - at < kStoredImageBytes) return std::nullopt;
    const std::uint64_t size = load_u64(bytes, at + 8);
    if (size > bytes.size() - at - kStoredImageBytes) return std::nullopt;
    SampleValues image(bytes.subspan(at + kStoredImageBytes, static_cast<std::size_t>(size)),
                       load_u32(bytes, at), load_u32(bytes, at + 4));
    const jpeg::FrameFile file{load_u32(bytes, at + 16), load_u32(bytes, at + 20), load_u32(bytes, at + 24),
                               load_u32(bytes, at + 28)};
    if (is_frame(file)) image.frame = SampleValues::Frame{file, load_u64(bytes, at + 32)};
    sample.images.push_back(image);
    at += kStoredImageBytes + static_cast<std::size_t>(size);
  }
  return at == bytes.size() ? std::optional(std::move(sample)) : std::nullopt;
}

}  // namespace shard::convert
