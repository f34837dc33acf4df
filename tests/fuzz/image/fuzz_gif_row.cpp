#include "image_row.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  shard::fuzz::decode_to_row(data, size, shard::image::Format::gif);
  return 0;
}
