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

void Decoder::decode_pieces(std::span<const std::byte> file, const Header& header, const Index& index,
                            const McuWindow& window) {
  const Layout& layout = header.layout;
  codes_.resize(std::size_t{2} * kMostTables);
  for (std::uint32_t c = 0; c < layout.components; ++c) {
    const Plane& plane = layout.planes[c];
    make_codes(header.dc[plane.dc], codes_[plane.dc]);
    make_codes(header.ac[plane.ac], codes_[kMostTables + plane.ac]);
  }
  std::array<std::uint16_t, kMostComponents> dc{};
  std::array<std::uint16_t, kMostComponents> ac{};
  for (std::uint32_t c = 0; c < layout.components; ++c) {
    dc[c] = static_cast<std::uint16_t>(layout.planes[c].dc * kLookUpEntries);
    ac[c] = static_cast<std::uint16_t>((kMostTables + layout.planes[c].ac) * kLookUpEntries);
  }
  plan_ = plan_scan(layout, window, dc.data(), ac.data());
  coefficients_.assign(std::size_t{plan_.first_line[kMostComponents]} * kBlockValues, 0);
  const Scan<FileBytes> scan{FileBytes(file), header.data_offset, static_cast<std::uint32_t>(file.size()),
                             codes_[0].entries};
  const Range pieces = pieces_of_columns(window.columns);
  for (std::uint32_t row = window.rows.begin; row < window.rows.end; ++row)
    for (std::uint32_t i = pieces.begin; i < pieces.end; ++i) {
      const std::uint32_t piece = row * layout.pieces_of_row() + i;
      PieceDecoder<FileBytes> decoder(plan_, scan);
      const auto put = [&](std::uint32_t k, std::int16_t value) {
        coefficients_[std::size_t{decoder.line()} * kBlockValues + k] = value;
      };
      decoder.begin(piece, index[piece]);
      for (bool more = true; more; more = decoder.next())
        while (!decoder.fetch() || !decoder.read_codes(put)) {
        }
      const Fault fault = decoder.finish(index[piece + 1]);
      if (fault != Fault::none)
        throw Error(ErrorCode::corrupt, fmt::format("JPEG: piece {} of {}, from bit {} on, {}", piece,
                                                    layout.pieces(), index[piece].position, text_of(fault)));
    }
}

void Decoder::make_samples(const Header& header, const McuWindow& window) {
  samples_.resize(coefficients_.size());
  for (std::uint32_t c = 0; c < header.layout.components; ++c) {
    const Plane& plane = header.layout.planes[c];
    const std::uint32_t columns = window.columns.size() * plane.h;
    const std::uint16_t* const quantization = header.quantization[plane.quantization].data();
    for (std::uint32_t line = plan_.first_line[c]; line < plan_.first_line[c + 1]; ++line) {
      const std::uint32_t block = line - plan_.first_line[c];
      std::uint8_t* const plane_samples = samples_.data() + std::size_t{plan_.first_line[c]} * kBlockValues;
      inverse_dct(coefficients_.data() + std::size_t{line} * kBlockValues, quantization,
                  plane_samples +
                      (std::size_t{block / columns} * columns * kBlockSide + block % columns) * kBlockSide,
                  columns * kBlockSide);
    }
  }
}

void Decoder::make_pixels(const Layout& layout, const McuWindow& window, const PixelBox& box) {
  const std::uint32_t channels = layout.channels();
  pixels_.resize(std::size_t{box.width} * box.height * channels);
  std::array<Samples, kMostComponents> samples;
  std::array<Upsampling, kMostComponents> ways{};
  for (std::uint32_t c = 0; c < channels; ++c) {
    const Plane& plane = layout.planes[c];
    samples[c] = {samples_.data() + std::size_t{plan_.first_line[c]} * kBlockValues,
                  window.columns.begin * plane.h * kBlockSide, window.rows.begin * plane.v * kBlockSide,
                  window.columns.size() * plane.h * kBlockSide};
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
  decode_pieces(file, header, index, window);
  make_samples(header, window);
  make_pixels(layout, window, box);
  return pixels_;
}

std::span<const std::uint8_t> Decoder::decode(std::span<const std::byte> file, const Header& header,
                                              const Index& index) {
  return decode(file, header, index, {0, 0, header.layout.width, header.layout.height});
}

}  // namespace shard::jpeg
