#include "jpeg/decode.hpp"

#include <fmt/format.h>

#include <string_view>

#include "jpeg/colour.hpp"
#include "jpeg/entropy.hpp"
#include "jpeg/idct.hpp"
#include "jpeg/upsample.hpp"
#include "shard/error.hpp"

namespace shard::jpeg {
namespace {

std::string_view text_of(Fault fault) {
  if (fault == Fault::code) return "has bits that are no Huffman code";
  if (fault == Fault::overrun) return "goes on where the data end";
  if (fault == Fault::restart) return "has no restart marker where one must be";
  return "does not end where the next one begins";
}

}  // namespace

void Decoder::make_parts(const Layout& layout, const McuWindow& window) {
  for (std::uint32_t c = 0; c < layout.components; ++c) {
    const Plane& plane = layout.planes[c];
    Part& part = parts_[c];
    part.first_column = window.columns.begin * plane.h;
    part.first_row = window.rows.begin * plane.v;
    part.columns = window.columns.size() * plane.h;
    part.rows = window.rows.size() * plane.v;
    part.coefficients.assign(std::size_t{part.rows} * part.columns * kBlockValues, 0);
  }
}

void Decoder::decode_pieces(std::span<const std::byte> file, const Header& header, const Index& index,
                            const McuWindow& window) {
  const Layout& layout = header.layout;
  look_ups_.resize(std::size_t{2} * kMostTables);
  for (std::uint32_t c = 0; c < layout.components; ++c) {
    const Plane& plane = layout.planes[c];
    make_look_up(header.dc[plane.dc], look_ups_[plane.dc].entries);
    make_look_up(header.ac[plane.ac], look_ups_[kMostTables + plane.ac].entries);
  }
  const Scan<FileBytes> scan{FileBytes(file), header.data_offset, static_cast<std::uint32_t>(file.size()),
                             look_ups_[0].entries, kMostTables};
  const Range pieces = pieces_of_columns(window.columns);
  for (std::uint32_t row = window.rows.begin; row < window.rows.end; ++row)
    for (std::uint32_t i = pieces.begin; i < pieces.end; ++i) {
      const std::uint32_t piece = row * layout.pieces_of_row() + i;
      PieceDecoder<FileBytes> decoder(layout, scan, piece, index[piece]);
      do {
        const auto [component, block_row, block_column] = decoder.block();
        Part& part = parts_[component];
        const std::size_t block =
            std::size_t{block_row - part.first_row} * part.columns + (block_column - part.first_column);
        std::int16_t* const values = part.coefficients.data() + block * kBlockValues;
        const auto put = [values](std::uint32_t k, std::int16_t value) { values[k] = value; };
        while (!decoder.step(put)) {
        }
      } while (decoder.next());
      const Fault fault = decoder.finish(index[piece + 1]);
      if (fault != Fault::none)
        throw Error(ErrorCode::corrupt, fmt::format("JPEG: piece {} of {}, from bit {} on, {}", piece,
                                                    layout.pieces(), index[piece].position, text_of(fault)));
    }
}

void Decoder::make_samples(const Header& header) {
  for (std::uint32_t c = 0; c < header.layout.components; ++c) {
    Part& part = parts_[c];
    const auto& quantization = header.quantization[header.layout.planes[c].quantization];
    part.samples.resize(part.coefficients.size());
    const std::uint32_t stride = part.columns * kBlockSide;
    const std::int16_t* block = part.coefficients.data();
    for (std::uint32_t row = 0; row < part.rows; ++row)
      for (std::uint32_t column = 0; column < part.columns; ++column, block += kBlockValues)
        inverse_dct(block, quantization.data(),
                    part.samples.data() + (std::size_t{row} * stride + column) * kBlockSide, stride);
  }
}

void Decoder::make_pixels(const Layout& layout, const PixelBox& box) {
  const std::uint32_t channels = layout.channels();
  pixels_.resize(std::size_t{box.width} * box.height * channels);
  std::array<Samples, kMostComponents> samples;
  std::array<Upsampling, kMostComponents> ways{};
  for (std::uint32_t c = 0; c < channels; ++c) {
    const Part& part = parts_[c];
    samples[c] = {part.samples.data(), part.first_column * kBlockSide, part.first_row * kBlockSide,
                  part.columns * kBlockSide};
    ways[c] = upsampling_of(layout, c);
  }
  std::uint8_t* pixel = pixels_.data();
  for (std::uint32_t y = box.top; y < box.top + box.height; ++y)
    for (std::uint32_t x = box.left; x < box.left + box.width; ++x, pixel += channels) {
      for (std::uint32_t c = 0; c < channels; ++c)
        pixel[c] = upsampled(layout, layout.planes[c], ways[c], samples[c], x, y);
      convert_colour(layout.colour, pixel);
    }
}

std::span<const std::uint8_t> Decoder::decode(std::span<const std::byte> file, const Header& header,
                                              const Index& index, const PixelBox& box) {
  const Layout& layout = header.layout;
  if (box.width == 0 || box.height == 0 || box.left >= layout.width || box.top >= layout.height ||
      box.width > layout.width - box.left || box.height > layout.height - box.top)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("JPEG: a box of {} x {} at ({}, {}) in an image of {} x {}", box.width,
                            box.height, box.left, box.top, layout.width, layout.height));
  McuWindow window = needed_mcus(layout, box);
  window.columns = columns_of_pieces(layout, pieces_of_columns(window.columns));
  make_parts(layout, window);
  decode_pieces(file, header, index, window);
  make_samples(header);
  make_pixels(layout, box);
  return pixels_;
}

std::span<const std::uint8_t> Decoder::decode(std::span<const std::byte> file, const Header& header,
                                              const Index& index) {
  return decode(file, header, index, {0, 0, header.layout.width, header.layout.height});
}

}  // namespace shard::jpeg
