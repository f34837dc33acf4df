// Any bytes as the head of a shard: the last 8 bytes of the input are the size of its file.
#include <cstdlib>

#include "base/bytes.hpp"
#include "shard/error.hpp"
#include "shard/shard_reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shard;
  if (size < 8) return 0;
  const std::span<const std::byte> input(reinterpret_cast<const std::byte*>(data), size);
  const auto head = input.first(size - 8);
  const std::uint64_t file_size = load_u64(input.last(8));
  try {
    SafetensorsHeader header = parse_safetensors(head, file_size);
    // What was accepted is consistent, and can be written again.
    const std::string text = serialize_safetensors_header(header);
    const SafetensorsHeader again =
        parse_safetensors(as_byte_span(text), text.size() + (file_size - header.data_begin));
    if (again.tensors.size() != header.tensors.size() || again.metadata != header.metadata) std::abort();
  } catch (const Error&) {
  }
  try {
    const ShardHeader header = parse_shard_header(head, file_size);
    if (header.images_end != file_size || header.images_begin % 4096 != 0 || header.samples == 0)
      std::abort();
    std::uint64_t end = header.head_end;  // the images of fields follow one another, without gaps of a page
    for (const ShardHeader::Range& images : header.field_ranges) {
      if (images.begin != end || images.end < images.begin) std::abort();
      end = (images.end + 4095) / 4096 * 4096;
    }
    if (end != header.images_begin) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
