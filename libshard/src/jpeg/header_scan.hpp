// The segments of a JPEG file up to the data of its scan, read byte by byte: where its tables are, and all
// else that its header says. One reader for host (header.hpp adds messages and the tables) and device.
//
// Takes bounded time and reads nothing outside of the file, whatever its bytes are.
#pragma once

#include <cstdint>

#include "base/host_device.hpp"
#include "jpeg/frame_file.hpp"
#include "jpeg/layout.hpp"
#include "jpeg/marker_codes.hpp"

namespace shard::jpeg {

inline constexpr std::uint32_t kMostTables = 4;  // of each kind

// Why a header is not taken; header.cpp has the messages. `a`, `b` and `c` are the values that they name.
enum class HeaderFault : std::uint8_t {
  none,
  no_soi,
  ends,            // at byte a
  no_marker,       // byte a at offset b
  low_marker,      // marker a at offset b
  stray_marker,    // marker a at offset b
  segment_length,  // of a bytes at offset b
  dri_length,      // a bytes
  jfif_version,    // a
  early_eoi,
  other_frame,    // marker a
  other_segment,  // marker a
  second_frame,
  frame_length,  // a bytes
  precision,     // a bits
  no_pixels,     // a x b
  large_side,    // a x b
  components,    // a
  frame_size,    // a bytes for b components
  no_factor,     // a
  quantization_number,
  same_name,           // a
  quantization_table,  // of precision a and number b
  quantization_length,
  huffman_length,
  huffman_number,  // of class a and number b
  huffman_codes,   // a codes, b bytes left
  early_scan,
  scan_length,  // a bytes for b components
  several_scans,
  other_order,
  huffman_numbers,  // a and b
  spectrum,         // a to b, bits c
  many_blocks,
  fractions,        // a x b beside c >> 8 x c & 255
  transform,        // a
  no_quantization,  // a
  no_huffman,       // a or b
};

struct HeaderScan {
  // Bytes, factors and size; the orientation is 1.
  FrameFile file;
  Colour colour = Colour::gray;
  bool adobe = false;  // the file has Adobe's marker
  std::uint32_t restart_interval = 0;
  std::uint32_t data_offset = 0;  // the first byte of entropy-coded data
  // Of each component.
  std::uint8_t quantization[kMostComponents] = {};
  std::uint8_t dc[kMostComponents] = {};
  std::uint8_t ac[kMostComponents] = {};
  // Where the tables' values begin in the file; 0: there is none. Quantisation: | 2^31 if they have 16 bits.
  std::uint32_t quantization_at[kMostTables] = {};
  std::uint32_t dc_at[kMostTables] = {};
  std::uint32_t ac_at[kMostTables] = {};

  HeaderFault fault = HeaderFault::none;
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  std::uint32_t c = 0;
};
inline constexpr std::uint32_t kWideQuantization = 1U << 31;

// A segment's data, behind its length: [begin, end) of the file.
struct SegmentPlace {
  std::uint8_t marker = 0;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  SHARD_EXACT constexpr std::uint32_t size() const noexcept { return end - begin; }
};

// `Bytes`: byte(i) is byte i of the file, which has `size` bytes.
template <class Bytes>
class HeaderScanner {
 public:
  SHARD_EXACT HeaderScanner(const Bytes& bytes, std::uint32_t size, std::uint32_t at = 0)
      : bytes_(bytes), size_(size), at_(at) {
    scan_.file.bytes = size;
  }

  SHARD_EXACT const HeaderScan& read() {
    if (size_ < 2 || u8(0) != 0xFF || u8(1) != kMarkerSoi) {
      fail(HeaderFault::no_soi);
      return scan_;
    }
    at_ = 2;
    while (scan_.fault == HeaderFault::none && scan_.data_offset == 0) read_segment();
    return scan_;
  }

  // The next segment; EOI has no data. Faults: ends to segment_length.
  SHARD_EXACT SegmentPlace next() {
    SegmentPlace segment;
    const std::uint32_t begin = at_;
    if (ends(2)) return failed(HeaderFault::ends, begin);
    if (u8(at_) != 0xFF) return failed(HeaderFault::no_marker, u8(at_), begin);
    // Any number of bytes 0xFF may stand before a marker.
    while (!ends(2) && u8(at_ + 1) == 0xFF) ++at_;
    if (ends(2)) return failed(HeaderFault::ends, begin);
    segment.marker = static_cast<std::uint8_t>(u8(at_ + 1));
    at_ += 2;
    if (segment.marker == kMarkerEoi) return segment;
    if (segment.marker < kMarkerSof0) return failed(HeaderFault::low_marker, segment.marker, begin);
    if (segment.marker >= kMarkerRst0 && segment.marker <= kMarkerSoi)
      return failed(HeaderFault::stray_marker, segment.marker, begin);
    const std::uint32_t length = ends(2) ? 0 : u16(at_);
    if (length < 2 || ends(length)) return failed(HeaderFault::segment_length, length, begin);
    segment.begin = at_ + 2;
    segment.end = at_ += length;
    return segment;
  }

  SHARD_EXACT const HeaderScan& scan() const noexcept { return scan_; }
  // Behind the last segment.
  SHARD_EXACT std::uint32_t offset() const noexcept { return at_; }

 private:
  SHARD_EXACT std::uint32_t u8(std::uint32_t at) const { return bytes_.byte(at); }
  SHARD_EXACT std::uint32_t u16(std::uint32_t at) const { return u8(at) << 8 | u8(at + 1); }
  SHARD_EXACT bool ends(std::uint32_t bytes) const { return size_ - at_ < bytes; }
  SHARD_EXACT void fail(HeaderFault fault, std::uint32_t a = 0, std::uint32_t b = 0, std::uint32_t c = 0) {
    if (scan_.fault != HeaderFault::none) return;
    scan_.fault = fault;
    scan_.a = a;
    scan_.b = b;
    scan_.c = c;
  }
  SHARD_EXACT SegmentPlace failed(HeaderFault fault, std::uint32_t a = 0, std::uint32_t b = 0) {
    fail(fault, a, b);
    return {};
  }
  SHARD_EXACT bool begins(const SegmentPlace& segment, std::uint32_t least, const char* text,
                          std::uint32_t length) const {
    if (segment.size() < least) return false;
    for (std::uint32_t i = 0; i < length; ++i)
      if (u8(segment.begin + i) != static_cast<std::uint8_t>(text[i])) return false;
    return true;
  }

  SHARD_EXACT void read_segment() {
    const SegmentPlace segment = next();
    if (scan_.fault != HeaderFault::none) return;
    switch (segment.marker) {
      case kMarkerSof0:
      case kMarkerSof1:
        return read_frame(segment);
      case kMarkerDht:
        return read_huffman(segment);
      case kMarkerDqt:
        return read_quantization(segment);
      case kMarkerDri:
        if (segment.size() != 2) return fail(HeaderFault::dri_length, segment.size());
        scan_.restart_interval = u16(segment.begin);
        return;
      case kMarkerApp0:
        if (!begins(segment, 14, "JFIF\0", 5)) return;
        if (u8(segment.begin + 5) != 1) return fail(HeaderFault::jfif_version, u8(segment.begin + 5));
        jfif_ = true;
        return;
      case kMarkerApp14:
        if (!begins(segment, 12, "Adobe", 5)) return;
        scan_.adobe = true;
        transform_ = u8(segment.begin + 11);
        return;
      case kMarkerSos:
        return read_scan(segment);
      case kMarkerEoi:
        return fail(HeaderFault::early_eoi);
      default:
        break;
    }
    if (is_ancillary(segment.marker)) return;
    const bool frame = segment.marker <= 0xCF && segment.marker != kMarkerDac;
    fail(frame ? HeaderFault::other_frame : HeaderFault::other_segment, segment.marker);
  }

  SHARD_EXACT void read_frame(const SegmentPlace& segment) {
    if (count_ != 0) return fail(HeaderFault::second_frame);
    if (segment.size() < 6) return fail(HeaderFault::frame_length, segment.size());
    const std::uint32_t at = segment.begin;
    const std::uint32_t height = u16(at + 1);
    const std::uint32_t width = u16(at + 3);
    const std::uint32_t count = u8(at + 5);
    if (u8(at) != 8) return fail(HeaderFault::precision, u8(at));
    if (width == 0 || height == 0) return fail(HeaderFault::no_pixels, width, height);
    if (width > kMostPixelsOfSide || height > kMostPixelsOfSide)
      return fail(HeaderFault::large_side, width, height);
    if (count != 1 && count != 3 && count != 4) return fail(HeaderFault::components, count);
    if (segment.size() != 6 + 3 * count) return fail(HeaderFault::frame_size, segment.size(), count);
    scan_.file.size = width | height << 16;
    count_ = count;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t factors = u8(at + 7 + 3 * i);
      const std::uint32_t h = factors >> 4;
      const std::uint32_t v = factors & 15U;
      if (h == 0 || h > 4) return fail(HeaderFault::no_factor, h);
      if (v == 0 || v > 4) return fail(HeaderFault::no_factor, v);
      names_[i] = static_cast<std::uint8_t>(u8(at + 6 + 3 * i));
      scan_.file.factors |= factors_of(i, h, v);
      scan_.quantization[i] = static_cast<std::uint8_t>(u8(at + 8 + 3 * i));
      if (scan_.quantization[i] >= kMostTables)
        return fail(HeaderFault::quantization_number, scan_.quantization[i]);
      for (std::uint32_t k = 0; k < i; ++k)
        if (names_[k] == names_[i]) return fail(HeaderFault::same_name, names_[i]);
    }
  }

  SHARD_EXACT void read_quantization(const SegmentPlace& segment) {
    for (std::uint32_t at = segment.begin; at < segment.end;) {
      const std::uint32_t head = u8(at++);
      const std::uint32_t wide = head >> 4;
      const std::uint32_t table = head & 15U;
      if (wide > 1 || table >= kMostTables) return fail(HeaderFault::quantization_table, wide, table);
      const std::uint32_t bytes = kBlockValues * (wide + 1);
      if (segment.end - at < bytes) return fail(HeaderFault::quantization_length, segment.end - at);
      scan_.quantization_at[table] = at | (wide != 0 ? kWideQuantization : 0);
      at += bytes;
    }
  }

  SHARD_EXACT void read_huffman(const SegmentPlace& segment) {
    for (std::uint32_t at = segment.begin; at < segment.end;) {
      if (segment.end - at < 17) return fail(HeaderFault::huffman_length, segment.end - at);
      const std::uint32_t head = u8(at++);
      const std::uint32_t table = head & 15U;
      if (head >> 4 > 1 || table >= kMostTables) return fail(HeaderFault::huffman_number, head >> 4, table);
      std::uint32_t codes = 0;
      for (std::uint32_t i = 0; i < 16; ++i) codes += u8(at + i);
      if (codes > 256 || segment.end - at - 16 < codes)
        return fail(HeaderFault::huffman_codes, codes, segment.end - at - 16);
      (head >> 4 == 1 ? scan_.ac_at : scan_.dc_at)[table] = at;
      at += 16 + codes;
    }
  }

  SHARD_EXACT void read_scan(const SegmentPlace& segment) {
    const std::uint32_t at = segment.begin;
    if (count_ == 0) return fail(HeaderFault::early_scan);
    const std::uint32_t count = segment.size() == 0 ? 0 : u8(at);
    if (count == 0 || count > 4 || segment.size() != 4 + 2 * count)
      return fail(HeaderFault::scan_length, segment.size(), count);
    if (count != count_) return fail(HeaderFault::several_scans, count, count_);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t tables = u8(at + 2 + 2 * i);
      if (u8(at + 1 + 2 * i) != names_[i]) return fail(HeaderFault::other_order);
      if (tables >> 4 >= kMostTables || (tables & 15U) >= kMostTables)
        return fail(HeaderFault::huffman_numbers, tables >> 4, tables & 15U);
      scan_.dc[i] = static_cast<std::uint8_t>(tables >> 4);
      scan_.ac[i] = static_cast<std::uint8_t>(tables & 15U);
    }
    const std::uint32_t end = at + 1 + 2 * count;
    if (u8(end) != 0 || u8(end + 1) != 63 || u8(end + 2) != 0)
      return fail(HeaderFault::spectrum, u8(end), u8(end + 1), u8(end + 2));
    if (count == 1) scan_.file.factors = factors_of(0, 1, 1);
    check_factors();
    find_colour();
    check_tables();
    scan_.data_offset = at_;
  }

  SHARD_EXACT void check_factors() {
    const FrameFile& file = scan_.file;
    std::uint32_t h_max = 1;
    std::uint32_t v_max = 1;
    std::uint32_t blocks = 0;
    for (std::uint32_t c = 0; c < count_; ++c) {
      if (file.h(c) > h_max) h_max = file.h(c);
      if (file.v(c) > v_max) v_max = file.v(c);
      blocks += file.h(c) * file.v(c);
    }
    if (blocks > kMostBlocksOfMcu) return fail(HeaderFault::many_blocks);
    for (std::uint32_t c = 0; c < count_; ++c)
      if (h_max % file.h(c) != 0 || v_max % file.v(c) != 0)
        return fail(HeaderFault::fractions, file.h(c), file.v(c), h_max << 8 | v_max);
  }

  // As libjpeg decides it (jdapimin.c).
  SHARD_EXACT void find_colour() {
    if (count_ == 1) {
      scan_.colour = Colour::gray;
    } else if (count_ == 4) {
      scan_.colour = scan_.adobe && transform_ == 2 ? Colour::ycck : Colour::cmyk;
      if (scan_.adobe && transform_ != 0 && transform_ != 2) fail(HeaderFault::transform, transform_);
    } else if (jfif_) {
      scan_.colour = Colour::ycc;
    } else if (scan_.adobe) {
      scan_.colour = transform_ == 0 ? Colour::rgb : Colour::ycc;
      if (transform_ > 1) fail(HeaderFault::transform, transform_);
    } else {
      const bool letters = names_[0] == 'R' && names_[1] == 'G' && names_[2] == 'B';
      scan_.colour = letters ? Colour::rgb : Colour::ycc;
    }
  }

  SHARD_EXACT void check_tables() {
    for (std::uint32_t c = 0; c < count_; ++c) {
      if (scan_.quantization_at[scan_.quantization[c]] == 0)
        return fail(HeaderFault::no_quantization, scan_.quantization[c]);
      if (scan_.dc_at[scan_.dc[c]] == 0 || scan_.ac_at[scan_.ac[c]] == 0)
        return fail(HeaderFault::no_huffman, scan_.dc[c], scan_.ac[c]);
    }
  }

  Bytes bytes_;
  std::uint32_t size_;
  std::uint32_t at_;
  HeaderScan scan_;
  std::uint32_t count_ = 0;  // components
  std::uint8_t names_[kMostComponents] = {};
  bool jfif_ = false;
  std::uint32_t transform_ = 0;  // Adobe's
};

// Value `k` of a quantisation table (HeaderScan::quantization_at), in the order of the zigzag.
template <class Bytes>
SHARD_EXACT std::uint16_t quantization_value(const Bytes& bytes, std::uint32_t place, std::uint32_t k) {
  const std::uint32_t at = place & ~kWideQuantization;
  if ((place & kWideQuantization) == 0) return static_cast<std::uint16_t>(bytes.byte(at + k));
  return static_cast<std::uint16_t>(bytes.byte(at + 2 * k) << 8 | bytes.byte(at + 2 * k + 1));
}

// The layout with all that the scan of the header says.
SHARD_EXACT constexpr Layout layout_of(const HeaderScan& scan) noexcept {
  Layout layout = geometry_of(scan.file);
  layout.restart_interval = scan.restart_interval;
  layout.colour = scan.colour;
  for (std::uint32_t c = 0; c < layout.components; ++c) {
    layout.planes[c].quantization = scan.quantization[c];
    layout.planes[c].dc = scan.dc[c];
    layout.planes[c].ac = scan.ac[c];
  }
  return layout;
}

}  // namespace shard::jpeg
