// Codec jpeg: frames of JPEG files (jpeg/frame.hpp). Decoded and encoded by libjpeg-turbo; loaders for GPUs
// decode frames with kernels, to the same bytes.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "format/codec/codecs.hpp"
#include "jpeg/frame.hpp"
#include "libjpeg/decode.hpp"
#include "libjpeg/encode.hpp"
#include "shard/error.hpp"
#include "shard/jpeg_frame.hpp"

namespace shard {
namespace {

[[noreturn]] void bad_frame(const std::string& why) {
  throw Error(ErrorCode::corrupt, "frame of codec jpeg: " + why);
}

// What is left to other decoders is nothing that a frame has.
template <class Body>
auto in_frame(const Body& body) {
  try {
    return body();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    bad_frame(error.what());
  }
}

// The file and its index; all that can be told without decoding is right.
jpeg::FrameParts checked_parts(const FrameSpec& of, std::span<const std::byte> frame) {
  const jpeg::FrameParts parts = jpeg::split_frame(of.file, frame);
  const jpeg::Header header = in_frame([&] { return jpeg::parse_header(parts.file); });
  const jpeg::FrameFile found = jpeg::frame_file_of(header, parts.file.size(), of.file.orientation);
  if (found != of.file)
    bad_frame(fmt::format(
        "its file has {} x {} pixels and sampling factors {:#x}; the head of the shard says "
        "{} x {} and {:#x}",
        found.width(), found.height(), found.factors, of.file.width(), of.file.height(), of.file.factors));
  jpeg::parse_index(parts.index, header.layout, header.data_offset, parts.file.size());
  return parts;
}

// The frame is the one that its file has: the index, and zeros beside it.
void check_whole(const FrameSpec& of, std::span<const std::byte> frame) {
  const auto made =
      in_frame([&] { return make_jpeg_frame(file_of(frame, of.file), of.file.orientation).bytes; });
  const auto [at, other] = std::mismatch(frame.begin(), frame.end(), made.begin(), made.end());
  if (at != frame.end() || other != made.end())
    bad_frame(fmt::format("the index is not that of its file: byte {} of the frame is another one",
                          at - frame.begin()));
}

class JpegCoder final : public Coder {
 public:
  explicit JpegCoder(int quality) : quality_(quality) {}

  std::vector<std::byte> encode(FrameSpec& of, std::span<const std::byte> sample) const override {
    const SampleSpec& spec = of.sample;
    const auto* pixels = reinterpret_cast<const std::uint8_t*>(sample.data());
    JpegFrame frame = make_jpeg_frame(libjpeg::encode(
        {pixels, spec.width, spec.height, spec.channels, std::size_t{spec.width} * spec.channels}, quality_));
    of.file = frame.file;
    return std::move(frame.bytes);
  }

  void decode(const FrameSpec& of, std::span<const std::byte> frame,
              std::span<std::byte> sample) const override {
    if (of.file == jpeg::FrameFile{})
      throw Error(ErrorCode::invalid_argument,
                  "codec jpeg: what the head of the shard says of the file is missing");
    check_file(of);
    const jpeg::FrameParts parts = checked_parts(of, frame);
    const bool extra_bytes = in_frame([&] { return decoder().decode(parts.file, pixels_of(of, sample)); });
    if (extra_bytes) check_whole(of, frame);
  }

  void decode_part(const FrameSpec& of, std::span<const std::byte> frame, std::span<std::byte> sample,
                   const SampleBox& box) const override {
    if (box.width == of.sample.width && box.height == of.sample.height) return decode(of, frame, sample);
    check_file(of);
    const jpeg::FrameParts parts = checked_parts(of, frame);
    in_frame([&] {
      decoder().decode_part(parts.file, pixels_of(of, sample), {box.left, box.top, box.width, box.height});
    });
  }

  std::uint64_t least_frame_bytes(const FrameSpec& of) const noexcept override {
    return jpeg::frame_bytes(of.file);
  }
  std::uint64_t most_frame_bytes(const FrameSpec& of) const noexcept override {
    if (of.file == jpeg::FrameFile{}) return Coder::most_frame_bytes(of);
    return std::min(jpeg::frame_bytes(of.file), Coder::most_frame_bytes(of));
  }

  void check_file(const FrameSpec& of) const override {
    jpeg::check_frame_file(of.file);
    if (of.file.upright_width() != of.sample.width || of.file.upright_height() != of.sample.height)
      throw Error(ErrorCode::corrupt,
                  fmt::format("JPEG: {} x {} pixels of orientation {} are not a sample of {} rows and {} "
                              "columns",
                              of.file.width(), of.file.height(), of.file.orientation, of.sample.height,
                              of.sample.width));
    if (of.sample.channels == 1 && of.file.components() != 1)
      throw Error(ErrorCode::corrupt,
                  fmt::format("JPEG: {} components; samples of 1 channel have 1", of.file.components()));
  }

  void check_frame(const FrameSpec& of, std::span<const std::byte> frame) const override {
    check_file(of);
    checked_parts(of, frame);
  }
  void verify(const FrameSpec& of, std::span<const std::byte> frame) const override {
    check_frame(of, frame);
    check_whole(of, frame);
  }

 private:
  static libjpeg::Decoder& decoder() {
    thread_local libjpeg::Decoder decoder;
    return decoder;
  }
  static libjpeg::PixelsOut pixels_of(const FrameSpec& of, std::span<std::byte> sample) {
    return {reinterpret_cast<std::uint8_t*>(sample.data()), of.file.width(), of.file.height(),
            of.sample.channels, of.file.orientation};
  }

  int quality_;
};

}  // namespace

bool jpeg_can_hold(const SampleSpec& spec) noexcept {
  return spec.dtype == DType::u8 && spec.layout == Layout::nhwc && (spec.channels == 1 || spec.channels == 3);
}

std::shared_ptr<const Coder> make_jpeg_coder(const CodecSpec& codec, const SampleSpec& /*spec*/,
                                             const Normalization& /*normalization*/) {
  return std::make_shared<JpegCoder>(codec.level);
}

}  // namespace shard
