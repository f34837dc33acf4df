#include "jpeg/header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>

#include "jpeg/bits.hpp"
#include "shard/error.hpp"

namespace shard::jpeg {
namespace {

[[noreturn]] void corrupt(const std::string& what) { throw Error(ErrorCode::corrupt, "JPEG: " + what); }

[[noreturn]] void unsupported(const std::string& what) {
  throw Error(ErrorCode::unsupported, "JPEG: not for the kernels, but for libjpeg-turbo: " + what);
}

std::string_view name_of_frame(std::uint32_t marker) {
  if (marker == 0xC2) return "progressive (SOF2)";
  if (marker == 0xC3) return "lossless (SOF3)";
  if (marker >= 0xC5 && marker <= 0xC7) return "hierarchical (SOF5 to SOF7)";
  if (marker == 0xC9) return "arithmetic codes (SOF9)";
  if (marker == 0xCA) return "progressive with arithmetic codes (SOF10)";
  return "lossless or hierarchical with arithmetic codes (SOF11 to SOF15)";
}

// JPEGs of another kind.
void throw_unsupported(const HeaderScan& scan) {
  const std::uint32_t a = scan.a;
  const std::uint32_t b = scan.b;
  const std::uint32_t c = scan.c;
  switch (scan.fault) {
    case HeaderFault::stray_marker:
      unsupported(fmt::format("marker {:#04x} at offset {}", a, b));
    case HeaderFault::jfif_version:
      unsupported(fmt::format("JFIF of version {}, of which libjpeg warns", a));
    case HeaderFault::other_frame:
      unsupported(std::string(name_of_frame(a)));
    case HeaderFault::other_segment:
      unsupported(fmt::format("a segment of marker {:#04x}", a));
    case HeaderFault::precision:
      unsupported(fmt::format("{} bits per value", a));
    case HeaderFault::large_side:
      unsupported(fmt::format("{} x {} pixels; a side has at most {}", a, b, kMostPixelsOfSide));
    case HeaderFault::components:
      unsupported(fmt::format("{} components", a));
    case HeaderFault::same_name:
      unsupported(fmt::format("two components of the name {}", a));
    case HeaderFault::several_scans:
      unsupported(fmt::format("several scans: the first has {} of {} components", a, b));
    case HeaderFault::other_order:
      unsupported("a scan whose components have another order than the frame's");
    case HeaderFault::spectrum:
      unsupported(fmt::format("a sequential scan of coefficients {} to {}, bits {}", a, b, c));
    case HeaderFault::fractions:
      unsupported(fmt::format("sampling factors {} x {} beside {} x {}", a, b, c >> 8, c & 255U));
    case HeaderFault::transform:
      unsupported(fmt::format("a colour transform of {} in Adobe's marker", a));
    case HeaderFault::no_huffman:
      unsupported(fmt::format("no Huffman table {} or {}: the standard ones are meant", a, b));
    default:
      return;
  }
}

// Segments that break T.81.
std::string message_of(const HeaderScan& scan) {
  const std::uint32_t a = scan.a;
  const std::uint32_t b = scan.b;
  switch (scan.fault) {
    case HeaderFault::no_soi:
      return "does not begin with the bytes FF D8";
    case HeaderFault::ends:
      return fmt::format("ends at byte {} without EOI", a);
    case HeaderFault::no_marker:
      return fmt::format("byte {:#04x} at offset {} instead of a marker", a, b);
    case HeaderFault::low_marker:
      return fmt::format("marker {:#04x} at offset {}", a, b);
    case HeaderFault::segment_length:
      return fmt::format("a segment of {} bytes at offset {} of a file of {}", a, b, scan.file.bytes);
    case HeaderFault::dri_length:
      return fmt::format("a DRI segment of {} bytes instead of 2", a);
    case HeaderFault::early_eoi:
      return "ends (EOI) before its image data";
    case HeaderFault::second_frame:
      return "two frame headers (SOF)";
    case HeaderFault::frame_length:
      return fmt::format("a SOF segment of {} bytes", a);
    case HeaderFault::no_pixels:
      return fmt::format("{} x {} pixels", a, b);
    case HeaderFault::frame_size:
      return fmt::format("a SOF segment of {} bytes for {} components", a, b);
    case HeaderFault::no_factor:
      return fmt::format("a sampling factor of {}; 1 to 4 are valid", a);
    case HeaderFault::quantization_number:
      return fmt::format("quantisation table {}; 0 to 3 are valid", a);
    case HeaderFault::quantization_table:
      return fmt::format("a quantisation table of precision {} and number {}; 0 to 1 and 0 to 3 are valid", a,
                         b);
    case HeaderFault::quantization_length:
      return fmt::format("a DQT segment with {} bytes left for a table", a);
    case HeaderFault::huffman_length:
      return fmt::format("a DHT segment with {} bytes left for a table", a);
    case HeaderFault::huffman_number:
      return fmt::format("a Huffman table of class {} and number {}; 0 to 1 and 0 to 3 are valid", a, b);
    case HeaderFault::huffman_codes:
      return fmt::format("a Huffman table of {} codes, with {} bytes left", a, b);
    case HeaderFault::early_scan:
      return "a scan (SOS) before the frame header (SOF)";
    case HeaderFault::scan_length:
      return fmt::format("a SOS segment of {} bytes for {} components", a, b);
    case HeaderFault::huffman_numbers:
      return fmt::format("Huffman tables {} and {}; 0 to 3 are valid", a, b);
    case HeaderFault::many_blocks:
      return fmt::format("more than {} blocks in an MCU", kMostBlocksOfMcu);
    case HeaderFault::no_quantization:
      return fmt::format("quantisation table {} is missing", a);
    default:
      return "a header that cannot be read";
  }
}

HuffmanTable table_at(std::span<const std::byte> file, std::uint32_t at) {
  HuffmanTable table;
  std::uint32_t count = 0;
  for (std::uint32_t length = 1; length <= kLongestCode; ++length)
    count += table.counts[length] = std::to_integer<std::uint8_t>(file[at + length - 1]);
  for (std::uint32_t i = 0; i < count; ++i)
    table.symbols[i] = std::to_integer<std::uint8_t>(file[at + kLongestCode + i]);
  return table;
}

void check_codes(const Header& header) {
  const Layout& layout = header.layout;
  for (std::uint32_t i = 0; i < layout.components; ++i) {
    const Plane& plane = layout.planes[i];
    if (!is_prefix_code(header.dc[plane.dc]) || !is_prefix_code(header.ac[plane.ac]))
      corrupt(fmt::format("the counts of Huffman table {} or {} make no code", plane.dc, plane.ac));
    if (!is_dc_table(header.dc[plane.dc]))
      corrupt(fmt::format("Huffman table {}: a DC difference of more than {} bits", plane.dc, kMostDcBits));
  }
}

// What check_codes() demands of a table, which lies at byte `at`.
bool has_code(std::span<const std::byte> file, std::uint32_t at, bool is_dc) {
  HuffmanTable table;
  std::uint32_t count = 0;
  for (std::uint32_t length = 1; length <= kLongestCode; ++length)
    count += table.counts[length] = std::to_integer<std::uint8_t>(file[at + length - 1]);
  if (!is_prefix_code(table)) return false;
  const auto symbols = file.subspan(at + kLongestCode, is_dc ? count : 0);
  return std::all_of(symbols.begin(), symbols.end(),
                     [](std::byte symbol) { return std::to_integer<std::uint32_t>(symbol) <= kMostDcBits; });
}

}  // namespace

void throw_header_fault(const HeaderScan& scan) {
  throw_unsupported(scan);
  corrupt(message_of(scan));
}

Header parse_header(std::span<const std::byte> file) {
  if (file.size() > std::numeric_limits<std::uint32_t>::max())
    unsupported(fmt::format("a file of {} bytes; 2^32 - 1 are possible", file.size()));
  const FileBytes bytes(file);
  const HeaderScan scan = HeaderScanner(bytes, static_cast<std::uint32_t>(file.size())).read();
  if (scan.fault != HeaderFault::none) throw_header_fault(scan);
  Header header;
  header.layout = layout_of(scan);
  header.adobe = scan.adobe;
  header.data_offset = scan.data_offset;
  for (std::uint32_t table = 0; table < kMostTables; ++table) {
    if (const std::uint32_t place = scan.quantization_at[table]; place != 0)
      for (std::uint32_t k = 0; k < kBlockValues; ++k)
        header.quantization[table][k] = quantization_value(bytes, place, k);
    if (scan.dc_at[table] != 0) header.dc[table] = table_at(file, scan.dc_at[table]);
    if (scan.ac_at[table] != 0) header.ac[table] = table_at(file, scan.ac_at[table]);
  }
  check_codes(header);
  return header;
}

std::optional<FrameFile> find_frame_file(std::span<const std::byte> file) noexcept {
  if (file.size() > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  const FileBytes bytes(file);
  const HeaderScan scan = HeaderScanner(bytes, static_cast<std::uint32_t>(file.size())).read();
  if (scan.fault != HeaderFault::none) return std::nullopt;
  for (std::uint32_t c = 0; c < scan.file.components(); ++c) {
    // Most components share their tables with the one before.
    const bool same = c > 0 && scan.dc[c] == scan.dc[c - 1] && scan.ac[c] == scan.ac[c - 1];
    if (!same &&
        !(has_code(file, scan.dc_at[scan.dc[c]], true) && has_code(file, scan.ac_at[scan.ac[c]], false)))
      return std::nullopt;
  }
  return scan.file;
}

}  // namespace shard::jpeg
