// Each chunk's CRC is set right first: mutated bytes would hardly ever come past it.
#include <vector>

#include "image_row.hpp"

namespace {

std::uint32_t crc_of(const std::uint8_t* data, std::size_t size) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (std::size_t i = 0; i < size; ++i) {
    crc ^= data[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320u : 0u);
  }
  return ~crc;
}

void set_checksums(std::vector<std::uint8_t>& png) {
  for (std::size_t at = 8; at + 12 <= png.size();) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < 4; ++i) length = (length << 8) | png[at + i];
    if (length > png.size() - at - 12) return;
    const std::uint32_t crc = crc_of(png.data() + at + 4, length + 4);
    for (std::size_t i = 0; i < 4; ++i)
      png[at + 8 + length + i] = static_cast<std::uint8_t>(crc >> (24 - 8 * i));
    at += length + 12;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::uint8_t> png(data, data + size);
  set_checksums(png);
  shard::fuzz::decode_to_row(png.data(), png.size(), shard::image::Format::png);
  return 0;
}
