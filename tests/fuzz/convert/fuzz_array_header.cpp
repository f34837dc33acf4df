// Any bytes as the header of an .npy or IDX file, and as an .npz file: what is accepted lies inside the file.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "convert/archives/array.hpp"
#include "shard/image/wide.hpp"

namespace {

using namespace shard::convert;

void take(const ArrayHeader& header, std::size_t size) {
  const ArrayImages images = images_of(header, size % 2 == 0 ? ArrayLayout::nhwc : ArrayLayout::automatic);
  const std::uint64_t elements = count_elements(header, images.element_bytes, size);
  const std::uint64_t bytes = elements * images.element_bytes;
  if (header.data_offset + bytes > size || images.count * images.item_bytes() != bytes) std::abort();
  const std::vector<std::byte> tiff = tiff_header(images);
  const shard::image::WideInfo info = shard::image::read_wide_info(tiff, std::uint64_t{1} << 30U);
  if (info.width != images.width || info.height != images.height) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
  for (const auto& parse : {parse_npy_header, parse_idx_header}) {
    try {
      take(parse(file), size);
    } catch (const shard::Error&) {
    }
  }
  try {
    const auto read = [&](std::uint64_t offset, std::span<std::byte> out) {
      if (out.empty() || offset >= size) return std::size_t{0};
      const std::size_t count = std::min(out.size(), size - static_cast<std::size_t>(offset));
      std::memcpy(out.data(), data + offset, count);
      return count;
    };
    for (const ZipMember& member : list_npz(read, size))
      if (member.offset > size || member.stored_bytes > size - member.offset) std::abort();
  } catch (const shard::Error&) {
  }
  return 0;
}
