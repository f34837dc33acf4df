// Any bytes as a frame of codec packed, and any bytes as a sample: every coder, in both layouts, says the
// same.
//
// Input: channels, height, width and a byte of choices, then the frame, or the pixels, repeated as needed.
// The header of the frame is made to fit unless the choices say otherwise, and so are the ends of its strips.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "format/codec/packed_frame.hpp"
#include "shard/error.hpp"

namespace {

using namespace shard;
using packed::Shape;
using Bytes = std::vector<std::byte>;

// In memory of its own length, so that a sanitizer sees what is read or written beyond it.
struct Exact {
  explicit Exact(std::span<const std::byte> bytes)
      : memory(std::make_unique<std::byte[]>(bytes.size())), view(memory.get(), bytes.size()) {
    std::copy(bytes.begin(), bytes.end(), memory.get());
  }
  std::unique_ptr<std::byte[]> memory;
  std::span<std::byte> view;
};

std::optional<Bytes> decode(const packed::Kernels& kernels, const Shape& shape, Layout layout,
                            std::span<const std::byte> frame) {
  const Exact sample(Bytes(shape.pixels_bytes()));
  try {
    packed::decode(kernels, shape, layout, frame, sample.view);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt) std::abort();
    return std::nullopt;
  }
  return Bytes(sample.view.begin(), sample.view.end());
}

Bytes interleaved(const Shape& shape, const Bytes& planes) {
  Bytes pixels(planes.size());
  const std::size_t plane = std::size_t{shape.height} * shape.width;
  for (std::size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = planes[i % shape.channels * plane + i / shape.channels];
  return pixels;
}

// The ends of the strips as their codes have them, as far as the frame reaches; else few inputs get past
// them.
void repair(const Shape& shape, Bytes& frame, bool ends) {
  frame.resize((frame.size() + 15) / 16 * 16);
  const std::uint8_t header[8] = {packed::kVersion,
                                  packed::kPacked,
                                  static_cast<std::uint8_t>(shape.channels),
                                  0,
                                  static_cast<std::uint8_t>(shape.height),
                                  0,
                                  static_cast<std::uint8_t>(shape.width),
                                  0};
  if (frame.size() < shape.first_strip()) return;
  std::memcpy(frame.data(), header, sizeof header);
  std::size_t end = shape.first_strip();
  for (std::size_t strip = 0; ends && strip < shape.strips(); ++strip) {
    const std::size_t codes = end + packed::kSeedBytes;
    if (codes + shape.code_bytes() > frame.size()) return;
    end = codes + shape.code_bytes();
    for (std::size_t i = 0; i < shape.code_bytes(); ++i) {
      const auto byte = std::to_integer<unsigned>(frame[codes + i]);
      end += 2 * (packed::code_width(byte & 15U) + packed::code_width(byte >> 4));
    }
    end = (end + 15) / 16 * 16;
    if (end > frame.size()) return;
    for (std::size_t i = 0; i < 4; ++i)
      frame[packed::kHeaderBytes + 4 * strip + i] = static_cast<std::byte>(end / 16 >> (8 * i));
  }
  if (ends) frame.resize(end);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<packed::NamedKernels> all = packed::all_kernels();
  if (size < 5) return 0;
  // Small, so that there are many of them: two strips, and rows for a few pairs.
  const Shape shape{1U + data[0] % 4, 1U + data[1] % 9, 1U + data[2] % 66};
  const unsigned choices = data[3];
  const Layout layout = (choices & 8U) != 0 ? Layout::nhwc : Layout::nchw;
  const std::span<const std::byte> rest(reinterpret_cast<const std::byte*>(data) + 4, size - 4);

  Bytes bytes(rest.begin(), rest.end());
  if ((choices & 3U) != 0) repair(shape, bytes, (choices & 2U) != 0);
  const Exact frame(bytes);
  const auto expected = decode(packed::scalar_kernels(), shape, Layout::nchw, frame.view);
  if (expected) {
    const Bytes sample = layout == Layout::nchw ? *expected : interleaved(shape, *expected);
    for (const auto& [name, kernels] : all)
      if (decode(kernels, shape, layout, frame.view) != sample) std::abort();
  } else {
    if (decode(all[choices % all.size()].kernels, shape, layout, frame.view)) std::abort();
  }

  Bytes planes(shape.pixels_bytes());
  const unsigned shift = choices >> 4 & 7U;  // smaller steps, so that not all is noise
  unsigned value = 0;
  for (std::size_t i = 0; i < planes.size(); ++i) {
    value += std::to_integer<unsigned>(rest[i % rest.size()]) >> shift;
    planes[i] = static_cast<std::byte>(value);
  }
  const Exact sample(layout == Layout::nchw ? planes : interleaved(shape, planes));
  const Exact coded(packed::encode(packed::scalar_kernels(), shape, layout, sample.view));
  const Bytes all_coded(coded.view.begin(), coded.view.end());
  for (const auto& [name, kernels] : all) {
    if (packed::encode(kernels, shape, layout, sample.view) != all_coded) std::abort();
    if (decode(kernels, shape, Layout::nchw, coded.view) != planes) std::abort();
  }
  return 0;
}
