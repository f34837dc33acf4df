// Any text as dataset.json: as it is, and with a digest that is right.
#include <cstdlib>
#include <string>

#include "base/digest/checksum.hpp"
#include "format/dataset/dataset_json.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"

namespace {

void parse(const std::string& text) {
  using namespace shard;
  try {
    const DatasetInfo info = parse_dataset(text);
    // What was accepted can be written, and says the same when it is read again.
    const std::string written = serialize_dataset(info);
    if (serialize_dataset(parse_dataset(written)) != written) std::abort();
    if (info.samples() + info.rejects != info.inputs) std::abort();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt && error.code() != ErrorCode::unsupported) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  parse(text);
  const auto last = text.rfind(shard::kDigestBefore);
  if (last != std::string::npos) text.resize(last);
  const std::string digest = shard::to_hex(shard::xxh3(text));
  text += shard::kDigestBefore;
  text += digest;
  text += shard::kDigestAfter;
  parse(text);
  return 0;
}
