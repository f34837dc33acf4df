#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/bytes.hpp"
#include "cuda/kernels/jpeg.hpp"
#include "cuda/kernels/jpeg_groups.hpp"
#include "jpeg/huffman.hpp"

namespace shard::gpu {
namespace {

constexpr std::size_t kParameterAlignment = 16;

// Numbers the tables that are used from 0 on, and makes their look-ups.
template <class Number>
std::uint32_t renumber(jpeg::Layout& layout, const std::array<jpeg::HuffmanTable, jpeg::kMostTables>& tables,
                       Number number, std::vector<jpeg::LookUp>& look_ups) {
  std::array<int, jpeg::kMostTables> numbers{-1, -1, -1, -1};
  std::uint32_t used = 0;
  for (std::uint32_t c = 0; c < layout.components; ++c) {
    std::uint8_t& table = layout.planes[c].*number;
    int& known = numbers[table];
    if (known < 0) {
      known = static_cast<int>(used++);
      jpeg::make_look_up(tables[table], look_ups.emplace_back().entries);
    }
    table = static_cast<std::uint8_t>(known);
  }
  return used;
}

std::uint32_t groups_of(std::uint64_t work, std::uint32_t per_group) {
  return static_cast<std::uint32_t>((work + per_group - 1) / per_group);
}

}  // namespace

JpegPlan::JpegPlan(std::span<const JpegSource> sources) {
  const std::size_t row = sources.size() + 1;
  groups_.assign(3 * row, 0);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const JpegSource& source = sources[i];
    JpegImage& image = images_.emplace_back();
    std::memset(static_cast<void*>(&image), 0, sizeof image);
    image.layout = source.header->layout;
    image.box = source.box;
    image.window = jpeg::needed_mcus(image.layout, image.box);
    const jpeg::Range pieces = jpeg::pieces_of_columns(image.window.columns);
    image.window.columns = jpeg::columns_of_pieces(image.layout, pieces);
    image.look_ups = static_cast<std::uint32_t>(look_ups_.size());
    image.dc_tables = renumber(image.layout, source.header->dc, &jpeg::Plane::dc, look_ups_);
    image.tables = image.dc_tables + renumber(image.layout, source.header->ac, &jpeg::Plane::ac, look_ups_);
    most_tables_ = std::max(most_tables_, image.tables);
    for (std::uint32_t c = 0; c < image.layout.components; ++c) {
      const jpeg::Plane& plane = image.layout.planes[c];
      const auto& table = source.header->quantization[plane.quantization];
      std::copy(table.begin(), table.end(), image.quantization[c]);
      image.first_block[c + 1] =
          image.first_block[c] + image.window.rows.size() * plane.v * (image.window.columns.size() * plane.h);
    }
    for (std::uint32_t c = image.layout.components; c < jpeg::kMostComponents; ++c)
      image.first_block[c + 1] = image.first_block[c];
    const std::uint32_t blocks = image.first_block[jpeg::kMostComponents];
    image.file_bytes = source.file_bytes;
    image.data_offset = source.header->data_offset;
    image.blocks = blocks_;
    image.file = source.file;
    image.index = source.index;
    image.pixels = source.pixels;
    blocks_ += blocks;
    groups_[i + 1] =
        groups_[i] + groups_of(std::uint64_t{image.window.rows.size()} * pieces.size(), kJpegPieces);
    groups_[row + i + 1] = groups_[row + i] + groups_of(blocks, kJpegBlocks);
    groups_[2 * row + i + 1] =
        groups_[2 * row + i] +
        groups_of(std::uint64_t{(image.box.width + kJpegQuad - 1) / kJpegQuad} * image.box.height,
                  kJpegQuads);
  }
}

std::size_t JpegPlan::parameter_bytes() const noexcept {
  return round_up(images_.size() * sizeof(JpegImage), kParameterAlignment) +
         round_up(look_ups_.size() * sizeof(jpeg::LookUp), kParameterAlignment) +
         round_up((groups_.size() + images_.size()) * sizeof(std::uint32_t), kParameterAlignment);
}

JpegLaunch JpegPlan::write(std::byte* host, const std::byte* device) const {
  JpegLaunch launch;
  std::size_t at = 0;
  const auto place = [&](const auto& values) {
    const std::size_t size = values.size() * sizeof(values[0]);
    std::memcpy(host + at, values.data(), size);
    const std::byte* there = device + at;
    at += round_up(size, kParameterAlignment);
    return there;
  };
  launch.images = reinterpret_cast<const JpegImage*>(place(images_));
  launch.count = static_cast<std::uint32_t>(images_.size());
  launch.look_ups = reinterpret_cast<const std::uint16_t*>(place(look_ups_));
  // Faults begin as 0, and come to the device with the rest.
  std::vector<std::uint32_t> groups = groups_;
  groups.resize(groups_.size() + images_.size());
  const auto* first = reinterpret_cast<const std::uint32_t*>(place(groups));
  const std::size_t row = images_.size() + 1;
  launch.pieces = {first, groups_[row - 1]};
  launch.blocks = {first + row, groups_[2 * row - 1]};
  launch.pixels = {first + 2 * row, groups_[3 * row - 1]};
  launch.faults = const_cast<std::uint32_t*>(first + 3 * row);
  launch.most_tables = most_tables_;
  return launch;
}

}  // namespace shard::gpu
