// Three bytes with the size of a part and of the pool, then the file. Lanes and builder accept the same
// files, but for what may stand behind the image data, and give the same index.
#include <cstdlib>

#include "jpeg/index_builder.hpp"
#include "jpeg/lanes/lane_index.hpp"
#include "shard/error.hpp"

namespace {

// The builder's index is the lanes', or both refuse the file.
void compare(const shard::jpeg::LaneIndex::Result& lanes, std::span<const std::byte> file,
             const shard::jpeg::Header& header) {
  bool accepted = false;
  std::vector<std::byte> right;
  try {
    shard::jpeg::IndexBuilder builder;
    shard::jpeg::IndexBuilder::Result result = builder.build(file, header);
    accepted = result.extra_bytes == 0;
    right = std::move(result.index);
  } catch (const shard::Error&) {
  }
  const bool found = lanes.fault == shard::jpeg::Fault::none;
  if (found && (!accepted || lanes.index != right)) std::abort();
  if (!found && accepted && lanes.fault != shard::jpeg::Fault::rest) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data + 3), size - 3);
  try {
    const shard::jpeg::Header header = shard::jpeg::parse_header(file);
    if (std::uint64_t{header.layout.width} * header.layout.height > 1U << 18) return 0;
    const auto bytes = static_cast<std::uint32_t>(file.size());
    shard::jpeg::LaneIndex lanes;
    compare(lanes.build(file, header), file, header);
    const auto plan =
        shard::jpeg::plan_lanes(bytes, 1U + data[0], data[1] | static_cast<std::uint32_t>(data[2]) << 8);
    compare(lanes.build(file, header, plan), file, header);
  } catch (const shard::Error&) {
  }
  return 0;
}
