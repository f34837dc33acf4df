// The host reference of decoding on the device: from entry points to pixels, step by step as the kernels do
// it, with their functions. Equal to libjpeg-turbo's default decoder bit for bit (idct.hpp, upsample.hpp and
// colour.hpp say what that is). A program that only wants pixels calls libjpeg-turbo, which is faster.
//
//   pieces -> coefficients -> (dequantise, inverse DCT) -> samples of planes -> (upsample, colour) -> pixels
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "jpeg/header.hpp"
#include "jpeg/index.hpp"
#include "jpeg/region.hpp"

namespace shard::jpeg {

// Not thread-safe: one per thread. Keeps its memory from call to call.
class Decoder {
 public:
  // The pixels of `box`: rows of `box.width` pixels of layout.channels() bytes. Decodes only the pieces that
  // the box needs, with memory for their MCUs. `index`: parse_index() of this file's. corrupt: a piece is
  // damaged or does not end where the next one begins. invalid_argument: a box that is empty or leaves the
  // image.
  std::span<const std::uint8_t> decode(std::span<const std::byte> file, const Header& header,
                                       const Index& index, const PixelBox& box);
  // The whole image.
  std::span<const std::uint8_t> decode(std::span<const std::byte> file, const Header& header,
                                       const Index& index);

 private:
  void decode_pieces(std::span<const std::byte> file, const Header& header, const Index& index,
                     const McuWindow& window);
  void make_samples(const Header& header, const McuWindow& window);
  void make_pixels(const Layout& layout, const McuWindow& window, const PixelBox& box);

  std::vector<CodeTable> codes_;
  ScanPlan plan_;
  std::vector<std::int16_t> coefficients_;  // by line, zigzag
  std::vector<std::uint8_t> samples_;       // planes of the window, one after the other
  std::vector<std::uint8_t> pixels_;
};

}  // namespace shard::jpeg
