// Two bytes with the size of an index, the index, the file. An index that decoding accepts is the right one.
#include <algorithm>
#include <cstdlib>

#include "jpeg/decode.hpp"
#include "jpeg/index_builder.hpp"
#include "shard/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::span<const std::byte> all(reinterpret_cast<const std::byte*>(data + 2), size - 2);
  const std::size_t index_bytes = std::min<std::size_t>(all.size(), data[0] | data[1] << 8);
  const auto given = all.first(index_bytes);
  const auto file = all.subspan(index_bytes);
  try {
    const shard::jpeg::Header header = shard::jpeg::parse_header(file);
    if (std::uint64_t{header.layout.width} * header.layout.height > 1U << 18) return 0;
    const auto index = shard::jpeg::parse_index(given, header.layout, header.data_offset, file.size());
    shard::jpeg::Decoder decoder;
    decoder.decode(file, header, index);
    shard::jpeg::IndexBuilder builder;
    // It refuses more: what stands behind the scan.
    const auto right = builder.build(file, header).index;
    if (!std::equal(right.begin(), right.end(), given.begin(), given.end())) std::abort();
  } catch (const shard::Error&) {
  }
  return 0;
}
