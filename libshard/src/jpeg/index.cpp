#include "jpeg/index.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/bytes.hpp"
#include "shard/error.hpp"

namespace shard::jpeg {
namespace {

[[noreturn]] void bad_index(const std::string& what) {
  throw Error(ErrorCode::corrupt, "JPEG index: " + what);
}

std::uint32_t mcus_of_piece(const Layout& layout, std::uint32_t piece) {
  const std::uint32_t first = piece % layout.pieces_of_row() * kMcusPerPiece;
  return std::min(layout.mcu_columns - first, kMcusPerPiece);
}

}  // namespace

std::vector<std::byte> encode_index(const Layout& layout, std::uint32_t data_offset,
                                    std::span<const EntryPoint> entries, std::uint32_t end) {
  std::vector<std::byte> bytes(index_bytes(layout));
  store_u32(bytes, 0, index_head(layout.components));
  store_u32(bytes, 4, static_cast<std::uint32_t>(entries.size()));
  store_u32(bytes, 8, data_offset);
  store_u32(bytes, 12, end);
  std::size_t predictor = kIndexHeadBytes + 4 * entries.size();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    store_u32(bytes, kIndexHeadBytes + 4 * i, entries[i].position);
    for (std::uint32_t c = 0; c < layout.components; ++c) {
      bytes[predictor++] = static_cast<std::byte>(entries[i].predictors[c] & 0xFF);
      bytes[predictor++] = static_cast<std::byte>(entries[i].predictors[c] >> 8);
    }
  }
  return bytes;
}

EntryPoint Index::operator[](std::uint32_t i) const noexcept {
  EntryPoint entry;
  if (i >= entries_) {
    entry.position = load_u32(bytes_, 12);
    return entry;
  }
  entry.position = load_u32(bytes_, kIndexHeadBytes + std::size_t{4} * i);
  const std::size_t at = kIndexHeadBytes + std::size_t{4} * entries_ + std::size_t{2} * components_ * i;
  for (std::uint32_t c = 0; c < components_; ++c)
    entry.predictors[c] = static_cast<std::uint16_t>(std::to_integer<unsigned>(bytes_[at + 2 * c]) |
                                                     std::to_integer<unsigned>(bytes_[at + 2 * c + 1]) << 8);
  return entry;
}

Index parse_index(std::span<const std::byte> bytes, const Layout& layout, std::uint32_t data_offset,
                  std::size_t file_bytes) {
  if (bytes.size() != index_bytes(layout))
    bad_index(fmt::format("{} bytes; an image of {} pieces has {}", bytes.size(), layout.pieces(),
                          index_bytes(layout)));
  const auto head = [&](std::size_t at) { return std::to_integer<unsigned>(bytes[at]); };
  if (head(0) != kIndexVersion || head(1) != layout.components || head(2) != kMcusPerPiece || head(3) != 0)
    bad_index(fmt::format("begins with {}, {}, {}, {} instead of {}, {}, {}, 0", head(0), head(1), head(2),
                          head(3), kIndexVersion, layout.components, kMcusPerPiece));
  if (load_u32(bytes, 4) != layout.pieces())
    bad_index(fmt::format("{} entries; the image has {} pieces", load_u32(bytes, 4), layout.pieces()));
  if (load_u32(bytes, 8) != data_offset)
    bad_index(fmt::format("image data at offset {}; they are at {}", load_u32(bytes, 8), data_offset));
  Index index;
  index.bytes_ = bytes;
  index.entries_ = layout.pieces();
  index.components_ = layout.components;
  for (std::uint32_t c = 0; c < layout.components; ++c)
    if (index[0].predictors[c] != 0)
      bad_index(fmt::format("the image begins with a predictor of {} instead of 0", index[0].predictors[c]));
  // Each block has two codes at least, of one bit at least.
  std::uint64_t least = 0;
  for (std::uint32_t i = 0; i < index.size(); ++i) {
    const std::uint64_t position = index[i].position;
    if (position < least || (i == 0 && position != 0))
      bad_index(fmt::format("piece {} begins at bit {}; it must be at {} or later", i, position, least));
    least = position + std::uint64_t{2} * layout.blocks_of_mcu * mcus_of_piece(layout, i);
  }
  const std::uint64_t end = index[index.size()].position;
  const std::uint64_t most = std::uint64_t{8} * (file_bytes - std::min<std::size_t>(file_bytes, data_offset));
  if (end < least || end > most)
    bad_index(fmt::format("the image data end at bit {}; {} to {} are possible", end, least, most));
  return index;
}

}  // namespace shard::jpeg
