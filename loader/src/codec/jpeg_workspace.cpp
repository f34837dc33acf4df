#include "codec/jpeg_workspace.hpp"

#include <algorithm>
#include <limits>

#include "jpeg/huffman.hpp"
#include "jpeg/lanes/lane_decoder.hpp"
#include "jpeg/lanes/lane_plan.hpp"
#include "jpeg/skip_table.hpp"

namespace shard {

namespace {

// 16 bits of each coefficient, 8 of each sample.
constexpr std::uint64_t kBytesOfBlock = 3 * jpeg::kBlockValues;
// Two tables of codes for each component, what is read of the header, and alignment.
constexpr std::uint64_t bytes_of_image(std::uint64_t components) {
  return 2 * components * jpeg::kLookUpEntries * sizeof(jpeg::CodeEntry) + 4096;
}
constexpr std::uint64_t kMostFactor = 4;

// Rows of the image as it is stored, top to bottom, are columns of the upright one from 5 on, and in four
// orientations they come in the opposite order.
bool is_reversed(std::uint32_t orientation) noexcept {
  return orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
}
std::uint64_t blocks_of(const jpeg::Layout& layout, const jpeg::McuWindow& window) noexcept {
  return std::uint64_t{window.rows.size()} * window.columns.size() * layout.blocks_of_mcu;
}

jpeg::McuWindow window_of(const jpeg::Layout& layout, const jpeg::PixelBox& stored) noexcept {
  jpeg::McuWindow window = jpeg::needed_mcus(layout, stored);
  window.columns = jpeg::columns_of_pieces(layout, jpeg::pieces_of_columns(window.columns));
  return window;
}

// Rows [begin, end) of the stored image, as a part of the upright box.
jpeg::PixelBox band_of(const jpeg::FrameFile& file, const jpeg::PixelBox& upright, std::uint32_t begin,
                       std::uint32_t end) noexcept {
  const std::uint32_t first = is_reversed(file.orientation) ? file.height() - end : begin;
  jpeg::PixelBox band = upright;
  (file.transposed() ? band.left : band.top) = first;
  (file.transposed() ? band.width : band.height) = end - begin;
  return band;
}

}  // namespace

std::uint64_t jpeg_workspace_bytes(const jpeg::FrameFile& file, const jpeg::PixelBox& upright) noexcept {
  const jpeg::Layout layout = jpeg::geometry_of(file);
  return blocks_of(layout, window_of(layout, jpeg::stored_box(file, upright))) * kBytesOfBlock +
         bytes_of_image(layout.components);
}

std::uint64_t usual_jpeg_workspace_bytes(std::uint64_t pixels, std::uint32_t channels) noexcept {
  // Blocks at the right and at the bottom are not full.
  const std::uint64_t values = channels == 1 ? pixels : pixels + pixels / 2;
  return (values + values / 8) / jpeg::kBlockValues * kBytesOfBlock + bytes_of_image(channels);
}

// Filters see the row of MCUs above and the one below.
std::uint64_t least_jpeg_workspace_bytes(std::uint32_t height, std::uint32_t width,
                                         std::uint32_t channels) noexcept {
  const std::uint64_t factor = channels == 1 ? 1 : kMostFactor;
  const std::uint64_t components = channels == 1 ? 1 : jpeg::kMostComponents;
  const std::uint64_t padding = factor * jpeg::kBlockSide - 1;
  const std::uint64_t columns = (std::max(height, width) + padding) / jpeg::kBlockSide;
  return 3 * factor * columns * components * kBytesOfBlock + bytes_of_image(components);
}

std::uint64_t starts_workspace_bytes(std::uint64_t mcus, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  const jpeg::LanePlan plan =
      jpeg::plan_lanes(static_cast<std::uint32_t>(std::min(mcus, kMost)),
                       static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, jpeg::kMostIndexedBytes)));
  constexpr std::uint64_t kBytesOfChunk =
      jpeg::kStartsOfChunk * sizeof(jpeg::McuStart) + sizeof(std::uint32_t);
  constexpr std::uint64_t kBytesOfSkips = sizeof(jpeg::PackedSkip) * jpeg::kPackedTables * jpeg::kPackedSkips;
  return plan.slots() * sizeof(jpeg::Lane) + plan.chunks * kBytesOfChunk + kBytesOfSkips +
         sizeof(std::uint32_t);
}

std::uint64_t index_stage_bytes(std::uint64_t mcus, std::uint64_t bytes, std::uint32_t components) noexcept {
  return starts_workspace_bytes(mcus, bytes) + bytes_of_image(components);
}

std::uint64_t index_stage_bytes(const jpeg::FrameFile& file) noexcept {
  return index_stage_bytes(jpeg::geometry_of(file).mcus(), file.bytes, file.components());
}

void add_jpeg_bands(const jpeg::FrameFile& file, const jpeg::PixelBox& upright, std::uint64_t workspace_bytes,
                    std::vector<JpegBand>& bands) {
  const jpeg::Layout layout = jpeg::geometry_of(file);
  const jpeg::PixelBox stored = jpeg::stored_box(file, upright);
  const jpeg::McuWindow window = window_of(layout, stored);
  const std::uint64_t fixed = bytes_of_image(layout.components);
  const std::uint64_t room = workspace_bytes > fixed ? (workspace_bytes - fixed) / kBytesOfBlock : 0;
  const std::uint64_t blocks = blocks_of(layout, window);
  if (blocks <= room) return bands.push_back({upright, blocks * kBytesOfBlock + fixed});
  const std::uint64_t of_row = std::uint64_t{window.columns.size()} * layout.blocks_of_mcu;
  const std::uint64_t rows = std::max<std::uint64_t>(room / of_row, 3) - 2;
  const auto step = static_cast<std::uint32_t>(rows * layout.v_max * jpeg::kBlockSide);
  const std::uint32_t bottom = stored.top + stored.height;
  for (std::uint32_t begin = stored.top; begin < bottom;) {
    const std::uint32_t end = std::min(begin / step * step + step, bottom);
    const jpeg::PixelBox band = band_of(file, upright, begin, end);
    bands.push_back({band, jpeg_workspace_bytes(file, band)});
    begin = end;
  }
}

}  // namespace shard
