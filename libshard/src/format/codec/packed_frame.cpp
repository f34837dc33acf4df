#include "format/codec/packed_frame.hpp"

#include <cstring>
#include <string>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "shard/error.hpp"

namespace shard::packed {
namespace {

[[noreturn]] void corrupt(const std::string& why) { throw Error(ErrorCode::corrupt, "packed frame " + why); }

constexpr std::size_t kKeptBytes = std::size_t{16} << 20;  // of a thread's buffer, between frames

constexpr std::size_t aligned(std::size_t size) noexcept { return round_up(size, kAlignment); }

template <class Byte>
StripPixels<Byte> strip_pixels(const Shape& shape, Layout layout, Byte* pixels, std::size_t strip) {
  StripPixels<Byte> view;
  const bool planes = layout == Layout::nchw;
  view.column_stride = planes ? 1 : shape.channels;
  view.row_stride = shape.width * view.column_stride;
  view.channel_stride = planes ? std::size_t{shape.height} * shape.width : 1;
  view.first = pixels + strip * kStripColumns * view.column_stride;
  view.channels = shape.channels;
  view.height = shape.height;
  view.columns = static_cast<std::uint32_t>(std::min(kStripColumns, shape.width - strip * kStripColumns));
  return view;
}

// Planes are what is stored; `to_planes` or back.
void copy_stored(const Shape& shape, Layout layout, const std::byte* from, std::byte* to, bool to_planes) {
  if (layout == Layout::nchw || shape.channels == 1) {
    std::memcpy(to, from, shape.pixels_bytes());
    return;
  }
  const std::size_t plane = std::size_t{shape.height} * shape.width;
  for (std::size_t channel = 0; channel < shape.channels; ++channel) {
    for (std::size_t i = 0; i < plane; ++i) {
      const std::size_t in_planes = channel * plane + i;
      const std::size_t in_pixels = i * shape.channels + channel;
      if (to_planes)
        to[in_planes] = from[in_pixels];
      else
        to[in_pixels] = from[in_planes];
    }
  }
}

void put_header(const Shape& shape, std::uint8_t mode, std::byte* out) {
  out[0] = std::byte{kVersion};
  out[1] = std::byte{mode};
  out[2] = static_cast<std::byte>(shape.channels);
  out[4] = static_cast<std::byte>(shape.height);
  out[5] = static_cast<std::byte>(shape.height >> 8);
  out[6] = static_cast<std::byte>(shape.width);
  out[7] = static_cast<std::byte>(shape.width >> 8);
}

// The length of a strip without the zeros at its end, computed from its codes, which must be inside the
// strip.
std::size_t coded_strip_bytes(const Shape& shape, const std::byte* strip) {
  const auto* const codes = reinterpret_cast<const std::uint8_t*>(strip) + kSeedBytes;
  const std::size_t count = shape.code_bytes();
  std::size_t widths = 0;
  for (std::size_t begin = 0; begin < count; begin += 2048) {  // sums of 16 bits are what vectors are good at
    const std::size_t end = std::min(count, begin + 2048);
    std::uint16_t sum = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const unsigned low = codes[i] & 15U;
      const unsigned high = static_cast<unsigned>(codes[i] >> 4);
      sum = static_cast<std::uint16_t>(sum + code_width(low) + code_width(high));
    }
    widths += sum;
  }
  return kSeedBytes + count + 2 * widths;
}

// The end of a strip. Checks that it is inside the frame, and that there is room for the codes.
std::size_t strip_end(const Shape& shape, std::span<const std::byte> frame, std::size_t strip,
                      std::size_t begin) {
  const std::size_t entry = kHeaderBytes + 4 * strip;
  std::uint64_t end = 0;
  for (std::size_t i = 4; i-- > 0;) end = end << 8U | std::to_integer<std::uint64_t>(frame[entry + i]);
  end *= kAlignment;
  if (end < begin || end > frame.size())
    corrupt(fmt::format("has strip {} from byte {} to {} of {}", strip, begin, end, frame.size()));
  const std::size_t size = static_cast<std::size_t>(end) - begin;
  if (size > max_strip_bytes(shape))
    corrupt(fmt::format("has a strip {} of {} bytes: a strip has at most {}", strip, size,
                        max_strip_bytes(shape)));
  if (size < kSeedBytes + shape.code_bytes())
    corrupt(fmt::format("has a strip {} of {} bytes: its codes alone have {}", strip, size,
                        kSeedBytes + shape.code_bytes()));
  return static_cast<std::size_t>(end);
}

// After this check any bits decode to some sample.
void check_codes(const Shape& shape, std::span<const std::byte> coded, std::size_t strip) {
  const std::size_t size = aligned(coded_strip_bytes(shape, coded.data()));
  if (size != coded.size())
    corrupt(fmt::format("has a strip {} of {} bytes: its codes say {}", strip, coded.size(), size));
}

std::size_t stored_frame_bytes(const Shape& shape) { return aligned(kStoredBegin + shape.pixels_bytes()); }

void check_header(const Shape& shape, std::span<const std::byte> frame) {
  if (frame.size() < kStoredBegin || frame.size() % kAlignment != 0)
    corrupt(fmt::format("has {} bytes: it must have a multiple of {}", frame.size(), kAlignment));
  const auto byte = [&](std::size_t i) { return std::to_integer<std::uint32_t>(frame[i]); };
  if (byte(0) != kVersion)
    corrupt(fmt::format("states version {}: this build reads version {}", byte(0), kVersion));
  if (byte(1) != kStored && byte(1) != kPacked) corrupt(fmt::format("states mode {}", byte(1)));
  const Shape stated{byte(2) | byte(3) << 8U, byte(4) | byte(5) << 8U, byte(6) | byte(7) << 8U};
  if (stated.channels != shape.channels || stated.height != shape.height || stated.width != shape.width)
    corrupt(fmt::format("states {} channels of {}x{}: a sample has {} of {}x{}", stated.channels,
                        stated.width, stated.height, shape.channels, shape.width, shape.height));
}

}  // namespace

std::size_t max_strip_bytes(const Shape& shape) noexcept {
  return aligned(kSeedBytes + shape.code_bytes() + shape.channels * shape.row_pairs() * 2 * kStripColumns) +
         kAlignment;
}

std::uint64_t least_frame_bytes(const Shape& shape) noexcept {
  const std::uint64_t packed =
      shape.first_strip() + shape.strips() * aligned(kSeedBytes + shape.code_bytes());
  return std::min<std::uint64_t>(packed, stored_frame_bytes(shape));
}

std::vector<std::byte> encode(const Kernels& kernels, const Shape& shape, Layout layout,
                              std::span<const std::byte> pixels) {
  const auto* const values = reinterpret_cast<const std::uint8_t*>(pixels.data());
  const std::size_t stored_bytes = stored_frame_bytes(shape);
  const std::size_t longest = max_strip_bytes(shape);
  thread_local std::vector<std::byte> frame;  // kept: its memory costs as much as the coding
  std::size_t end = shape.first_strip();
  if (frame.size() < end) frame.resize(end);
  std::memset(frame.data(), 0, end);
  put_header(shape, kPacked, frame.data());
  for (std::size_t strip = 0; strip < shape.strips() && end < stored_bytes; ++strip) {
    if (frame.size() < end + longest) frame.resize(end + longest);
    auto* const out = reinterpret_cast<std::uint8_t*>(frame.data()) + end;
    const std::size_t size = kernels.encode_strip(strip_pixels(shape, layout, values, strip), out);
    std::memset(out + size, 0, aligned(size) - size);
    end += aligned(size);
    const std::size_t units = end / kAlignment;
    for (std::size_t i = 0; i < 4; ++i)
      frame[kHeaderBytes + 4 * strip + i] = static_cast<std::byte>(units >> (8 * i));
  }
  std::vector<std::byte> result;
  if (end < stored_bytes) {
    result.assign(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(end));
  } else {
    result.resize(stored_bytes);
    put_header(shape, kStored, result.data());
    copy_stored(shape, layout, pixels.data(), result.data() + kStoredBegin, true);
  }
  if (frame.size() > kKeptBytes) frame = {};
  return result;
}

void decode(const Kernels& kernels, const Shape& shape, Layout layout, std::span<const std::byte> frame,
            std::span<std::byte> pixels) {
  check_header(shape, frame);
  if (frame[1] == std::byte{kStored}) {
    if (frame.size() != stored_frame_bytes(shape))
      corrupt(fmt::format("has {} bytes: a stored sample takes {}", frame.size(), stored_frame_bytes(shape)));
    copy_stored(shape, layout, frame.data() + kStoredBegin, pixels.data(), false);
    return;
  }
  if (frame.size() < shape.first_strip())
    corrupt(fmt::format("has {} bytes: its table of strips needs {}", frame.size(), shape.first_strip()));
  auto* const values = reinterpret_cast<std::uint8_t*>(pixels.data());
  thread_local std::vector<std::byte> copy;
  std::size_t begin = shape.first_strip();
  for (std::size_t strip = 0; strip < shape.strips(); ++strip) {
    const std::size_t end = strip_end(shape, frame, strip, begin);
    if (strip + 1 == shape.strips() && end != frame.size())
      corrupt(fmt::format("ends after {} of {} stored bytes", end, frame.size()));
    // Decodes a copy in the nearest cache. There are bytes after it that may be read, and the checked bytes
    // are the decoded ones, even if somebody writes to the file of the frame.
    if (copy.size() < end - begin + kSlack) copy.resize(end - begin + kSlack);
    std::memcpy(copy.data(), frame.data() + begin, end - begin);
    check_codes(shape, {copy.data(), end - begin}, strip);
    kernels.decode_strip(reinterpret_cast<const std::uint8_t*>(copy.data()),
                         strip_pixels(shape, layout, values, strip));
    begin = end;
  }
  if (copy.size() > kKeptBytes) copy = {};
}

}  // namespace shard::packed
