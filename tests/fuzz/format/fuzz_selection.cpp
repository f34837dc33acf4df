// Any text as the file of a selection: as it is, and with a digest that is right.
#include <bit>
#include <cstdlib>
#include <string>

#include "base/digest/checksum.hpp"
#include "format/dataset/selection_file.hpp"
#include "shard/error.hpp"

namespace {

const shard::DatasetInfo& data_set() {
  static const shard::DatasetInfo info = [] {
    shard::DatasetInfo made;
    made.shards = {{"a", 70, 0, 0}, {"b", 1, 0, 0}, {"c", 9, 0, 0}};
    return made;
  }();
  return info;
}

void parse(const std::string& text) {
  using namespace shard;
  try {
    const SampleBits bits = parse_selection(text, data_set()).bits;
    if (bits.size() != 80 || bits.words()[1] >> 16U != 0) std::abort();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  parse(text);
  // The lines of shards alone, in a file whose other lines are right.
  std::string whole =
      "shard selection 1\ndata " + shard::to_hex(shard::digest_of_shards(data_set())) + '\n' + text + '\n';
  whole += "digest xxh3:" + shard::to_hex(shard::xxh3(whole)) + '\n';
  parse(whole);
  return 0;
}
