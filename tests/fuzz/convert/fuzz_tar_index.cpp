// Any bytes as the index of a tar archive of 1 MB: all places that it gives are inside, with usable names,
// and written again they are the same.
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include "convert/archives/tar_index.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shard::convert;
  constexpr std::uint64_t kArchiveBytes = 1'000'000;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  std::optional<TarIndex> index = TarIndex::parse(bytes, kArchiveBytes);
  if (!index) return 0;
  for (const auto& [begin, part] : index->places()) {
    const std::optional<TarListing> found = index->take(begin, part);
    if (!found || begin > kArchiveBytes || part > kArchiveBytes - begin) std::abort();
    for (const TarMember& member : found->members) {
      if (!member.problem.empty()) continue;
      if (member.offset > part || member.size_bytes > part - member.offset) std::abort();
      if (!problem_of_name(member.name).empty()) std::abort();
    }
    TarIndexWriter again;
    again.add(begin, part, *found);
    std::optional<TarIndex> same = TarIndex::parse(again.bytes(), kArchiveBytes);
    if (!same || !same->take(begin, part)) std::abort();
  }
  for (std::uint64_t offset = 0; offset < 64; ++offset)
    for (std::size_t count = 0; count < 64; ++count) {
      const auto read = index->read(offset, count);
      if (read && read->size() != count) std::abort();
    }
  return 0;
}
