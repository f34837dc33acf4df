// Any bytes as a frame of codec jpeg, with any row of jpeg_files; and any bytes as pixels. What verify()
// takes is decoded by the kernels' reference to the same pixels.
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <vector>

#include "base/bytes.hpp"
#include "format/shard/shard_profile.hpp"
#include "jpeg/decode.hpp"
#include "jpeg/frame.hpp"
#include "shard/codec.hpp"
#include "shard/error.hpp"

namespace {

using namespace shard;

constexpr std::uint64_t kMostSampleBytes = std::uint64_t{1} << 22;
const CodecSpec kJpeg{CodecSpec::Kind::jpeg, 50};

SampleSpec free_spec(std::uint32_t channels) { return {DType::u8, Layout::nhwc, channels, 0, 0}; }

template <class Action>
bool passes(Action action) {
  try {
    action();
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt) std::abort();
    return false;
  }
}

// Three components that are not turned: the reference makes the sample itself.
void compare_with_reference(const FrameSpec& of, std::span<const std::byte> frame,
                            std::span<const std::byte> sample) {
  if (of.file.orientation != 1 || of.file.components() != 3) return;
  const jpeg::FrameParts parts = jpeg::split_frame(of.file, frame);
  const jpeg::Header header = jpeg::parse_header(parts.file);
  const jpeg::Index index =
      jpeg::parse_index(parts.index, header.layout, header.data_offset, parts.file.size());
  jpeg::Decoder decoder;
  const auto pixels = std::as_bytes(decoder.decode(parts.file, header, index));
  if (!std::equal(pixels.begin(), pixels.end(), sample.begin(), sample.end())) std::abort();
}

void decode(const FrameSpec& of, std::span<const std::byte> frame) {
  const Codec codec(kJpeg, free_spec(of.sample.channels));
  if (!passes([&] { codec.check_file(of); })) return;
  if (of.sample.size_bytes() > kMostSampleBytes) return;
  std::vector<std::byte> sample(static_cast<std::size_t>(of.sample.size_bytes()));
  if (!passes([&] { codec.decode(frame, sample, of); })) return;
  if (!passes([&] { codec.verify(frame, of); })) return;
  compare_with_reference(of, frame, sample);
}

void round_trip(std::uint32_t channels, std::span<const std::byte> pixels) {
  const auto width = static_cast<std::uint32_t>(1 + pixels.size() % 37);
  const auto height = static_cast<std::uint32_t>(pixels.size() / channels / width);
  if (height == 0) return;
  FrameSpec of(free_spec(channels).sized(height, width));
  const Codec codec(kJpeg, free_spec(channels));
  const auto frame = codec.encode(pixels.first(static_cast<std::size_t>(of.sample.size_bytes())), of);
  std::vector<std::byte> back(static_cast<std::size_t>(of.sample.size_bytes()));
  codec.decode(frame, back, of);
  codec.verify(frame, of);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> input(reinterpret_cast<const std::byte*>(data), size);
  if (size < 17) return 0;
  const std::uint32_t channels = std::to_integer<unsigned>(input[16]) % 2 == 0 ? 1 : 3;
  FrameSpec of(free_spec(channels), load_jpeg_file(input, 0));
  of.sample = free_spec(channels).sized(of.file.upright_height(), of.file.upright_width());
  const std::span<const std::byte> frame = input.subspan(17);
  decode(of, frame);
  of.file.bytes = static_cast<std::uint32_t>(frame.size());  // the whole of it, and an index behind it
  if (passes([&] { jpeg::check_frame_file(of.file); }) && jpeg::frame_bytes(of.file) <= kMostSampleBytes) {
    std::vector<std::byte> longer(frame.begin(), frame.end());
    longer.resize(static_cast<std::size_t>(jpeg::frame_bytes(of.file)));
    decode(of, longer);
  }
  if (size < 20'000) round_trip(channels, frame);
  return 0;
}
