#include "jpeg/header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "jpeg/frame.hpp"
#include "jpeg/marker.hpp"
#include "shard/error.hpp"

namespace shard::jpeg {
namespace {

[[noreturn]] void corrupt(const std::string& what) { throw Error(ErrorCode::corrupt, "JPEG: " + what); }

[[noreturn]] void unsupported(const std::string& what) {
  throw Error(ErrorCode::unsupported, "JPEG: not for the kernels, but for libjpeg-turbo: " + what);
}

// A component as SOF says it.
struct Component {
  std::uint32_t id = 0;
  std::uint32_t h = 0;
  std::uint32_t v = 0;
  std::uint32_t quantization = 0;
};

// Reads segments until the scan begins.
class HeaderReader {
 public:
  explicit HeaderReader(std::span<const std::byte> file) : segments_(file) {}

  Header read() {
    for (bool more = true; more;) more = read_segment();
    return header_;
  }

 private:
  // False: the scan has begun.
  bool read_segment();
  void read_frame(Segment segment);
  void read_quantization(Segment segment);
  void read_huffman(Segment segment);
  void read_scan(Segment segment);
  void check_tables() const;
  void check_factors() const;
  void lay_out();
  Colour colour() const;

  SegmentReader segments_;
  Header header_;
  std::array<Component, kMostComponents> components_{};
  std::array<bool, kMostTables> has_quantization_{};
  std::array<bool, kMostTables> has_dc_{};
  std::array<bool, kMostTables> has_ac_{};
  bool jfif_ = false;
  std::uint32_t transform_ = 0;  // Adobe's
};

std::string_view name_of_frame(std::uint8_t marker) {
  if (marker == 0xC2) return "progressive (SOF2)";
  if (marker == 0xC3) return "lossless (SOF3)";
  if (marker >= 0xC5 && marker <= 0xC7) return "hierarchical (SOF5 to SOF7)";
  if (marker == 0xC9) return "arithmetic codes (SOF9)";
  if (marker == 0xCA) return "progressive with arithmetic codes (SOF10)";
  return "lossless or hierarchical with arithmetic codes (SOF11 to SOF15)";
}

bool HeaderReader::read_segment() {
  const Segment segment = segments_.next();
  const std::string_view data = as_text(segment.data);
  switch (segment.marker) {
    case kMarkerSof0:
    case kMarkerSof1:
      read_frame(segment);
      return true;
    case kMarkerDht:
      read_huffman(segment);
      return true;
    case kMarkerDqt:
      read_quantization(segment);
      return true;
    case kMarkerDri:
      if (data.size() != 2) corrupt(fmt::format("a DRI segment of {} bytes instead of 2", data.size()));
      header_.layout.restart_interval = segment.u16(0);
      return true;
    case kMarkerApp0:
      if (data.size() >= 14 && data.starts_with(std::string_view("JFIF\0", 5))) {
        if (segment.u8(5) != 1)
          unsupported(fmt::format("JFIF of version {}, of which libjpeg warns", segment.u8(5)));
        jfif_ = true;
      }
      return true;
    case kMarkerApp14:
      if (data.size() >= 12 && data.starts_with("Adobe")) {
        header_.adobe = true;
        transform_ = segment.u8(11);
      }
      return true;
    case kMarkerSos:
      read_scan(segment);
      return false;
    case kMarkerEoi:
      corrupt("ends (EOI) before its image data");
    default:
      break;
  }
  if (is_ancillary(segment.marker)) return true;
  if (segment.marker <= 0xCF && segment.marker != kMarkerDac)
    unsupported(std::string(name_of_frame(segment.marker)));
  unsupported(fmt::format("a segment of marker {:#04x}", segment.marker));
}

void HeaderReader::read_frame(Segment segment) {
  Layout& layout = header_.layout;
  if (layout.components != 0) corrupt("two frame headers (SOF)");
  if (segment.data.size() < 6) corrupt(fmt::format("a SOF segment of {} bytes", segment.data.size()));
  const std::uint32_t precision = segment.u8(0);
  const std::uint32_t count = segment.u8(5);
  layout.height = segment.u16(1);
  layout.width = segment.u16(3);
  if (precision != 8) unsupported(fmt::format("{} bits per value", precision));
  if (layout.width == 0 || layout.height == 0)
    corrupt(fmt::format("{} x {} pixels", layout.width, layout.height));
  if (std::max(layout.width, layout.height) > kMostPixelsOfSide)
    unsupported(fmt::format("{} x {} pixels; a side has at most 65500", layout.width, layout.height));
  if (count != 1 && count != 3 && count != 4) unsupported(fmt::format("{} components", count));
  if (segment.data.size() != 6 + 3 * std::size_t{count})
    corrupt(fmt::format("a SOF segment of {} bytes for {} components", segment.data.size(), count));
  layout.components = static_cast<std::uint8_t>(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t factors = segment.u8(7 + 3 * i);
    Component& component = components_[i];
    component = {segment.u8(6 + 3 * i), factors >> 4, factors & 15, segment.u8(8 + 3 * i)};
    for (const std::uint32_t factor : {component.h, component.v}) {
      if (factor == 0 || factor > 4)
        corrupt(fmt::format("a sampling factor of {}; 1 to 4 are valid", factor));
    }
    if (component.quantization >= kMostTables)
      corrupt(fmt::format("quantisation table {}; 0 to 3 are valid", component.quantization));
    for (std::uint32_t k = 0; k < i; ++k)
      if (components_[k].id == component.id)
        unsupported(fmt::format("two components of the name {}", component.id));
  }
}

void HeaderReader::read_quantization(Segment segment) {
  std::size_t at = 0;
  while (at < segment.data.size()) {
    const std::uint32_t head = segment.u8(at++);
    const std::uint32_t width = head >> 4;  // bytes per value - 1
    const std::uint32_t table = head & 15;
    if (width > 1 || table >= kMostTables)
      corrupt(fmt::format("a quantisation table of precision {} and number {}; 0 to 1 and 0 to 3 are valid",
                          width, table));
    if (segment.data.size() - at < kBlockValues * (width + 1))
      corrupt(fmt::format("a DQT segment with {} bytes left for a table", segment.data.size() - at));
    for (std::uint32_t k = 0; k < kBlockValues; ++k, at += width + 1)
      header_.quantization[table][k] =
          static_cast<std::uint16_t>(width == 0 ? segment.u8(at) : segment.u16(at));
    has_quantization_[table] = true;
  }
}

void HeaderReader::read_huffman(Segment segment) {
  std::size_t at = 0;
  while (at < segment.data.size()) {
    if (segment.data.size() - at < 1 + kLongestCode)
      corrupt(fmt::format("a DHT segment with {} bytes left for a table", segment.data.size() - at));
    const std::uint32_t head = segment.u8(at++);
    const std::uint32_t number = head & 15;
    if (head >> 4 > 1 || number >= kMostTables)
      corrupt(fmt::format("a Huffman table of class {} and number {}; 0 to 1 and 0 to 3 are valid", head >> 4,
                          number));
    HuffmanTable table;
    std::size_t count = 0;
    for (std::uint32_t length = 1; length <= kLongestCode; ++length)
      count += table.counts[length] = static_cast<std::uint8_t>(segment.u8(at++));
    if (count > 256 || segment.data.size() - at < count)
      corrupt(
          fmt::format("a Huffman table of {} codes, with {} bytes left", count, segment.data.size() - at));
    for (std::size_t i = 0; i < count; ++i) table.symbols[i] = static_cast<std::uint8_t>(segment.u8(at++));
    const bool ac = head >> 4 == 1;
    (ac ? header_.ac : header_.dc)[number] = table;
    (ac ? has_ac_ : has_dc_)[number] = true;
  }
}

void HeaderReader::read_scan(Segment segment) {
  Layout& layout = header_.layout;
  if (layout.components == 0) corrupt("a scan (SOS) before the frame header (SOF)");
  const std::size_t count = segment.data.empty() ? 0 : segment.u8(0);
  if (count == 0 || count > 4 || segment.data.size() != 4 + 2 * count)
    corrupt(fmt::format("a SOS segment of {} bytes for {} components", segment.data.size(), count));
  if (count != layout.components)
    unsupported(fmt::format("several scans: the first has {} of {} components", count, layout.components));
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t tables = segment.u8(2 + 2 * i);
    if (segment.u8(1 + 2 * i) != components_[i].id)
      unsupported("a scan whose components have another order than the frame's");
    if (tables >> 4 >= kMostTables || (tables & 15) >= kMostTables)
      corrupt(fmt::format("Huffman tables {} and {}; 0 to 3 are valid", tables >> 4, tables & 15));
    layout.planes[i].dc = static_cast<std::uint8_t>(tables >> 4);
    layout.planes[i].ac = static_cast<std::uint8_t>(tables & 15);
  }
  const std::uint32_t first = segment.u8(1 + 2 * count);
  const std::uint32_t last = segment.u8(2 + 2 * count);
  const std::uint32_t bits = segment.u8(3 + 2 * count);
  if (first != 0 || last != 63 || bits != 0)
    unsupported(fmt::format("a sequential scan of coefficients {} to {}, bits {}", first, last, bits));
  header_.data_offset = static_cast<std::uint32_t>(segments_.offset());
  lay_out();
  check_tables();
}

void HeaderReader::check_tables() const {
  const Layout& layout = header_.layout;
  for (std::uint32_t i = 0; i < layout.components; ++i) {
    const Plane& plane = layout.planes[i];
    if (!has_quantization_[plane.quantization])
      corrupt(fmt::format("quantisation table {} is missing", plane.quantization));
    if (!has_dc_[plane.dc] || !has_ac_[plane.ac])
      unsupported(fmt::format("no Huffman table {} or {}: the standard ones are meant", plane.dc, plane.ac));
    if (!is_prefix_code(header_.dc[plane.dc]) || !is_prefix_code(header_.ac[plane.ac]))
      corrupt(fmt::format("the counts of Huffman table {} or {} make no code", plane.dc, plane.ac));
    for (const std::uint8_t symbol : header_.dc[plane.dc].symbols)
      if (symbol > 15) corrupt(fmt::format("a DC difference of {} bits; 15 are possible", symbol));
  }
}

Colour HeaderReader::colour() const {
  const std::uint32_t count = header_.layout.components;
  if (count == 1) return Colour::gray;
  if (count == 4) {
    if (!header_.adobe) return Colour::cmyk;
    if (transform_ != 0 && transform_ != 2)
      unsupported(fmt::format("a colour transform of {} in Adobe's marker", transform_));
    return transform_ == 0 ? Colour::cmyk : Colour::ycck;
  }
  if (jfif_) return Colour::ycc;
  if (header_.adobe) {
    if (transform_ > 1) unsupported(fmt::format("a colour transform of {} in Adobe's marker", transform_));
    return transform_ == 0 ? Colour::rgb : Colour::ycc;
  }
  const bool letters = components_[0].id == 'R' && components_[1].id == 'G' && components_[2].id == 'B';
  return letters ? Colour::rgb : Colour::ycc;
}

void HeaderReader::check_factors() const {
  const std::span<const Component> components(components_.data(), header_.layout.components);
  std::uint32_t h_max = 1;
  std::uint32_t v_max = 1;
  std::uint32_t blocks = 0;
  for (const Component& component : components) {
    h_max = std::max(h_max, component.h);
    v_max = std::max(v_max, component.v);
    blocks += component.h * component.v;
  }
  if (blocks > kMostBlocksOfMcu) corrupt(fmt::format("more than {} blocks in an MCU", kMostBlocksOfMcu));
  for (const Component& component : components)
    if (h_max % component.h != 0 || v_max % component.v != 0)
      unsupported(
          fmt::format("sampling factors {} x {} beside {} x {}", component.h, component.v, h_max, v_max));
}

void HeaderReader::lay_out() {
  Layout& layout = header_.layout;
  if (layout.components == 1) components_[0].h = components_[0].v = 1;
  check_factors();
  FrameFile file;
  file.size = layout.width | layout.height << 16;
  for (std::uint32_t c = 0; c < layout.components; ++c)
    file.factors |= factors_of(c, components_[c].h, components_[c].v);
  Layout laid_out = geometry_of(file);
  laid_out.restart_interval = layout.restart_interval;
  laid_out.colour = colour();
  for (std::uint32_t c = 0; c < layout.components; ++c) {
    laid_out.planes[c].quantization = static_cast<std::uint8_t>(components_[c].quantization);
    laid_out.planes[c].dc = layout.planes[c].dc;
    laid_out.planes[c].ac = layout.planes[c].ac;
  }
  layout = laid_out;
}

}  // namespace

Header parse_header(std::span<const std::byte> file) {
  if (file.size() > std::numeric_limits<std::uint32_t>::max())
    unsupported(fmt::format("a file of {} bytes; 2^32 - 1 are possible", file.size()));
  return HeaderReader(file).read();
}

}  // namespace shard::jpeg
