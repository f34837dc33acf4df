// Four bytes that choose a box, then a file. What the index builder accepts can be decoded, and the box is
// the same as that part of the whole.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "jpeg/decode.hpp"
#include "jpeg/index_builder.hpp"
#include "shard/error.hpp"

namespace {

void check(std::span<const std::byte> file, const std::uint8_t* choice) {
  using namespace shard::jpeg;
  const Header header = parse_header(file);
  const Layout& layout = header.layout;
  if (std::uint64_t{layout.width} * layout.height > 1U << 18) return;
  IndexBuilder builder;
  const IndexBuilder::Result result = builder.build(file, header);
  try {
    const Index index = parse_index(result.index, layout, header.data_offset, file.size());
    Decoder decoder;
    const auto pixels = decoder.decode(file, header, index);
    const std::vector<std::uint8_t> whole(pixels.begin(), pixels.end());
    PixelBox box;
    box.left = layout.width * choice[0] / 256;
    box.top = layout.height * choice[1] / 256;
    box.width = 1 + (layout.width - box.left - 1) * choice[2] / 255;
    box.height = 1 + (layout.height - box.top - 1) * choice[3] / 255;
    const auto part = decoder.decode(file, header, index, box);
    const std::size_t row_bytes = std::size_t{box.width} * layout.channels();
    for (std::uint32_t y = 0; y < box.height; ++y) {
      const std::size_t from = (std::size_t{box.top + y} * layout.width + box.left) * layout.channels();
      if (!std::equal(part.begin() + static_cast<std::ptrdiff_t>(y * row_bytes),
                      part.begin() + static_cast<std::ptrdiff_t>((y + 1) * row_bytes),
                      whole.begin() + static_cast<std::ptrdiff_t>(from)))
        std::abort();
    }
  } catch (const shard::Error&) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  try {
    check({reinterpret_cast<const std::byte*>(data + 4), size - 4}, data);
  } catch (const shard::Error&) {
  }
  return 0;
}
