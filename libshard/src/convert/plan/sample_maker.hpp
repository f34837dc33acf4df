// SampleMaker: what a data set stores of an image. Codec jpeg is the reason for it: JPEG files are stored as
// they are if the samples keep the size of their images, and all else is encoded, so the stored sample is
// what is decoded again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "shard/codec.hpp"
#include "shard/convert/jpeg_counts.hpp"
#include "shard/error.hpp"
#include "shard/image/jpeg_originals.hpp"
#include "shard/image/preprocess.hpp"
#include "shard/shard_writer.hpp"

namespace shard::convert {

// Whether the samples have the pixels of their images, so that the frames of codec jpeg are their files.
bool keeps_jpeg_files(const image::PreprocessOptions& options, const CodecSpec& codec) noexcept;

// What becomes of JPEG files where keeps_jpeg_files().
enum class JpegFiles : std::uint8_t {
  decode,  // stored as they are, and decoded for the digest of their pixels
  read,    // stored as they are; there is neither sample() nor the digest of it
  encode,  // as other images
};

// One per thread, for one image after the other.
class SampleMaker {
 public:
  SampleMaker(const image::PreprocessOptions& options, const CodecSpec& codec,
              JpegFiles files = JpegFiles::decode);

  // The sample of a file, an image of pixels, or one with its own channels. Errors: as Preprocessor;
  // unsupported (codec jpeg and a side that no JPEG has).
  image::WarningSet run_file(std::span<const std::byte> file, const image::DecodeOptions& decode);
  void run(const image::RgbView& image);
  void run(const image::WideView& image);

  // Of the last one, valid until the next. For ShardWriter::put(): pixels, or a finished frame.
  SampleValues values() const;
  // The pixels before the codec; of a finished frame those that it decodes to.
  std::span<const std::byte> sample() const noexcept { return sample_; }
  const SampleSpec& made() const noexcept { return made_; }
  // With codec jpeg: what became of it.
  std::optional<JpegUse> jpeg_use() const noexcept { return codec_ ? std::optional(use_) : std::nullopt; }
  // What is stored: the sample, or where the codec loses something what it keeps of the sample. Valid until
  // the next call of a member.
  std::span<const std::byte> stored();

  image::Decoder& decoder() noexcept { return decoder_; }
  // Frees large buffers.
  void trim();

 private:
  void begin();
  void take_made();

  image::PreprocessOptions options_;
  std::optional<Codec> codec_;  // jpeg
  bool keeps_files_;
  bool decode_files_;
  bool has_sample_ = false;
  image::Decoder decoder_;
  image::Preprocessor preprocessor_;
  image::JpegOriginals originals_;
  std::vector<std::byte> sample_;
  std::vector<std::byte> stored_;
  SampleSpec made_;
  std::optional<JpegFrame> frame_;
  JpegUse use_ = JpegUse::encoded;
};

}  // namespace shard::convert
