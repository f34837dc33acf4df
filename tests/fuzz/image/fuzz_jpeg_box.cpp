// A box of a JPEG, decoded in part, against the same box of the whole. The first four bytes choose the box.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "image/codecs/jpeg.hpp"
#include "shard/error.hpp"

namespace {

using shard::image::Box;
using shard::image::JpegHeader;
using shard::image::JpegReader;

std::vector<std::uint8_t> decode(JpegReader& reader, const Box& box) {
  std::vector<std::uint8_t> rgb(std::size_t{box.width} * box.height * 3);
  reader.start(box);
  const std::size_t stride = std::size_t{box.width} * 3;
  for (std::uint32_t row = 0; row < box.height;)
    row += reader.read_rows(rgb.data() + row * stride, stride, 16);
  reader.finish();
  return rgb;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data + 4), size - 4);
  static JpegReader reader;
  shard::image::DecodeOptions options;
  options.max_pixels = 1 << 16;
  options.on_warning = static_cast<shard::image::OnWarning>(size % 3);
  options.fast_min_short_side = data[0] % 4 == 0 ? data[1] : 0u;
  try {
    const JpegHeader header = reader.open(file, options);
    const std::vector<std::uint8_t> whole = decode(reader, Box{0, 0, header.width, header.height});
    Box box;
    box.left = header.width * data[0] / 256;
    box.top = header.height * data[1] / 256;
    box.width = 1 + (header.width - box.left - 1) * data[2] / 255;
    box.height = 1 + (header.height - box.top - 1) * data[3] / 255;
    reader.open(file, options);
    const std::vector<std::uint8_t> part = decode(reader, box);
    for (std::uint32_t y = 0; y < box.height; ++y)
      if (std::memcmp(part.data() + std::size_t{y} * box.width * 3,
                      whole.data() + (std::size_t{box.top + y} * header.width + box.left) * 3,
                      std::size_t{box.width} * 3) != 0)
        std::abort();
  } catch (const shard::Error&) {
  }
  return 0;
}
