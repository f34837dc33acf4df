#include "convert/plan/sample_maker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/digest/checksum.hpp"

namespace shard::convert {

namespace {

constexpr std::size_t kKeptBytes = std::size_t{64} << 20U;  // of a sample, from one image to the next
constexpr std::uint32_t kMostSideOfJpeg = 65'500;           // of a JPEG that libjpeg writes

}  // namespace

bool keeps_jpeg_files(const image::PreprocessOptions& options, const CodecSpec& codec) noexcept {
  return codec.kind == CodecSpec::Kind::jpeg && options.free_size &&
         options.free_size->bound == image::FreeSize::Bound::none && options.free_size->multiple == 1 &&
         (options.channels == 0 || options.channels == 3);
}

SampleMaker::SampleMaker(const image::PreprocessOptions& options, const CodecSpec& codec, JpegFiles files)
    : options_(options),
      keeps_files_(files != JpegFiles::encode && keeps_jpeg_files(options, codec)),
      decode_files_(files == JpegFiles::decode),
      preprocessor_(options) {
  if (codec.kind == CodecSpec::Kind::jpeg)
    codec_.emplace(codec, options.sample_spec(), options.normalization);
}

image::WarningSet SampleMaker::run_file(std::span<const std::byte> file, const image::DecodeOptions& decode) {
  begin();
  if (!keeps_files_ || decode.page != 0 || image::detect_format(file) != image::Format::jpeg) {
    const image::WarningSet warnings = preprocessor_.run_file(decoder_, file, decode, sample_);
    take_made();
    return warnings;
  }
  image::JpegOriginal original;
  if (!decode_files_) original = originals_.take_undecoded(file, decode);
  has_sample_ = !original.frame;
  if (has_sample_) original = originals_.take(file, decode, sample_);
  made_ = options_.sample_spec().sized(original.height, original.width);
  // One that is larger than a shard may have: its file has far more metadata than pixels.
  if (original.frame &&
      original.frame->bytes.size() <= codec_->most_frame_bytes(FrameSpec(made_, original.frame->file))) {
    frame_ = std::move(original.frame);
    use_ = original.transcoded ? JpegUse::transcoded : JpegUse::kept;
  } else if (!has_sample_) {
    originals_.take(file, decode, sample_);
    has_sample_ = true;
  }
  return original.warnings;
}

void SampleMaker::run(const image::RgbView& image) {
  begin();
  preprocessor_.run(image, sample_);
  take_made();
}

void SampleMaker::run(const image::WideView& image) {
  begin();
  preprocessor_.run(image, sample_);
  take_made();
}

void SampleMaker::begin() {
  frame_.reset();
  use_ = JpegUse::encoded;
  has_sample_ = true;
}

void SampleMaker::take_made() {
  made_ = preprocessor_.made();
  if (codec_ && std::max(made_.height, made_.width) > kMostSideOfJpeg)
    throw Error(
        ErrorCode::unsupported,
        fmt::format("has {} x {} pixels, and sides of a JPEG have at most {}: use another codec, or make "
                    "the images smaller",
                    made_.width, made_.height, kMostSideOfJpeg));
}

SampleValues SampleMaker::values() const {
  if (frame_) return {*frame_, has_sample_ ? xxh3(sample_) : 0};
  return {sample_, made_.height, made_.width};
}

std::span<const std::byte> SampleMaker::stored() {
  if (!codec_ || frame_) return sample_;
  FrameSpec of(made_);
  const std::vector<std::byte> frame = codec_->encode(sample_, of);
  stored_.resize(sample_.size());
  codec_->decode(frame, stored_, of);
  return stored_;
}

void SampleMaker::trim() {
  if (sample_.capacity() > kKeptBytes) sample_ = {};
  if (frame_ && frame_->bytes.capacity() > kKeptBytes) frame_.reset();
}

}  // namespace shard::convert
