#include "jpeg/index_builder.hpp"

#include <fmt/format.h>

#include <cstring>

#include "jpeg/bits.hpp"
#include "jpeg/index.hpp"
#include "shard/error.hpp"

namespace shard::jpeg {
namespace {

constexpr std::uint64_t kNowhere = ~std::uint64_t{0};

// 57 bits at least from bit `position` on, the first one highest; the rest are 0.
inline std::uint64_t window_at(const std::uint8_t* data, std::uint64_t position) noexcept {
  std::uint64_t value = 0;
  std::memcpy(&value, data + position / 8, sizeof value);
  return __builtin_bswap64(value) << (position % 8);
}

inline std::uint32_t top16(std::uint64_t window) noexcept { return static_cast<std::uint32_t>(window >> 48); }

// The position behind the AC coefficients that begin at `position`; kNowhere.
inline std::uint64_t skip_ac(const std::uint8_t* data, std::uint64_t position,
                             const SkipTable& table) noexcept {
  const Skip* const skips = table.entries();
  std::uint32_t k = 1;
  for (;;) {
    std::uint64_t window = window_at(data, position);
    // Two entries have 54 bits at most.
    Skip skip = skips[window >> (64 - kSkipBits)];
    if (k + skip.needs <= kBlockValues) {
      position += skip.bits;
      k += skip.advance;
      if (k >= kBlockValues) return position;
      window <<= skip.bits;
      skip = skips[window >> (64 - kSkipBits)];
      if (k + skip.needs <= kBlockValues) {
        position += skip.bits;
        k += skip.advance;
        if (k >= kBlockValues) return position;
        continue;
      }
      window = window_at(data, position);
    }
    const std::uint32_t entry = look_up(table.look_up(), top16(window));
    if (entry == 0) return kNowhere;
    const std::uint32_t size = entry & 15U;
    const std::uint32_t run = (entry >> 4) & 15U;
    position += (entry >> 8) + size;
    if (size == 0 && run != 15) return position;
    k += run + 1;
    if (k >= kBlockValues) return position;
  }
}

// What may follow the scan: APPn, comments, EOI.
void check_rest(std::span<const std::byte> file, std::size_t offset) {
  HeaderScanner segments(FileBytes(file), static_cast<std::uint32_t>(file.size()),
                         static_cast<std::uint32_t>(offset));
  for (;;) {
    const SegmentPlace segment = segments.next();
    if (segments.scan().fault != HeaderFault::none) throw_header_fault(segments.scan());
    if (segment.marker == kMarkerEoi) return;
    if (!is_ancillary(segment.marker))
      throw Error(
          ErrorCode::unsupported,
          fmt::format("JPEG: not for the kernels, but for libjpeg-turbo: marker {:#04x} after the scan",
                      segment.marker));
  }
}

}  // namespace

void IndexBuilder::prepare(const Header& header) {
  const Layout& layout = header.layout;
  blocks_.clear();
  for (std::uint32_t c = 0; c < layout.components; ++c) {
    make_look_up(header.dc[layout.planes[c].dc], dc_[layout.planes[c].dc].entries);
    ac_[layout.planes[c].ac].assign(header.ac[layout.planes[c].ac]);
  }
  for (std::uint32_t i = 0; i < layout.blocks_of_mcu; ++i) {
    const std::uint32_t component = layout.blocks[i].component;
    blocks_.push_back(
        {dc_[layout.planes[component].dc].entries, &ac_[layout.planes[component].ac], component});
  }
  entries_.clear();
}

// The position behind the MCU; kNowhere. Reads at most 2480 bytes from `position` on.
std::uint64_t IndexBuilder::read_mcu(std::uint64_t position,
                                     std::array<std::uint16_t, kMostComponents>& predictors) const {
  const std::uint8_t* const data = scan_.data();
  for (const Block& block : blocks_) {
    std::uint64_t window = window_at(data, position);
    const std::uint32_t entry = look_up(block.dc, top16(window));
    if (entry == 0) return kNowhere;
    const std::uint32_t size = entry & 15U;
    position += (entry >> 8) + size;
    if (size != 0) {
      window <<= entry >> 8;
      std::uint16_t& predictor = predictors[block.component];
      predictor = static_cast<std::uint16_t>(predictor +
                                             extend(static_cast<std::uint32_t>(window >> (64 - size)), size));
    }
    position = skip_ac(data, position, *block.ac);
    if (position == kNowhere) return kNowhere;
  }
  return position;
}

// Fills entries_; the end of the last piece.
std::uint32_t IndexBuilder::read_entries(const Header& header) {
  const Layout& layout = header.layout;
  const std::span<const std::uint32_t> ends = scan_.interval_ends();
  const auto fail = [&](const char* what, std::uint64_t position, std::uint32_t mcu) {
    CleanScan::Origin origin(scan_);
    throw Error(ErrorCode::corrupt,
                fmt::format("JPEG: {} at byte {}, in MCU {} of {}", what,
                            header.data_offset + origin.of(position / 8), mcu, layout.mcus()));
  };
  // Each block has two codes at least.
  if (std::uint64_t{layout.mcus()} * layout.blocks_of_mcu * 2 > std::uint64_t{scan_.size()} * 8)
    fail("the image data end", std::uint64_t{scan_.size()} * 8, 0);
  entries_.reserve(layout.pieces() + std::size_t{1});
  CleanScan::Origin origin(scan_);
  const auto in_file = [&](std::uint64_t position) {
    return static_cast<std::uint32_t>(origin.of(position / 8) * 8 + position % 8);
  };
  std::array<std::uint16_t, kMostComponents> predictors{};
  std::uint64_t position = 0;
  std::size_t interval = 0;
  std::uint64_t end = std::uint64_t{8} * ends[0];
  for (std::uint32_t mcu = 0, row = 0; row < layout.mcu_rows; ++row)
    for (std::uint32_t column = 0; column < layout.mcu_columns; ++column, ++mcu) {
      if (layout.restarts_at(mcu)) {
        if ((position + 7) / 8 != ends[interval]) fail("bytes before a restart marker", position, mcu);
        if (++interval == ends.size()) fail("no restart marker", position, mcu);
        position = std::uint64_t{8} * ends[interval - 1];
        end = std::uint64_t{8} * ends[interval];
        predictors = {};
      }
      if (column % kMcusPerPiece == 0) {
        EntryPoint& entry = entries_.emplace_back();
        entry.position = in_file(position);
        std::memcpy(entry.predictors, predictors.data(), sizeof entry.predictors);
      }
      const std::uint64_t next = read_mcu(position, predictors);
      if (next == kNowhere) fail("no Huffman code", position, mcu);
      if (next > end) fail("the image data end", position, mcu);
      position = next;
    }
  if (interval + 1 != ends.size()) fail("a restart marker too many", position, layout.mcus());
  extra_bytes_ = scan_.size() - (position + 7) / 8;
  return in_file(position);
}

IndexBuilder::Result IndexBuilder::build(std::span<const std::byte> file, const Header& header) {
  prepare(header);
  scan_.assign(file, header.data_offset);
  check_rest(file, scan_.end());
  const std::uint32_t end = read_entries(header);
  Result result;
  result.extra_bytes = extra_bytes_;
  result.index = encode_index(header.layout, header.data_offset, entries_, end);
  return result;
}

}  // namespace shard::jpeg
