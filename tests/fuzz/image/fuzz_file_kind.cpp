// Any bytes have a kind and a reason; the same for the first bytes as for all.
#include <cstdlib>

#include "shard/image/file_kind.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
  const shard::image::FileKind kind = shard::image::recognize_file(file);
  const auto first = file.first(size < shard::image::kFileKindBytes ? size : shard::image::kFileKindBytes);
  if (kind.name.empty() || shard::image::recognize_file(first).name != kind.name) std::abort();
  if (shard::image::why_not_decodable(file).empty()) std::abort();
  return 0;
}
