// Any bytes as a tar archive: as they are, and with the checksums of all blocks made right,
// so that what is behind them is reached.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "convert/archives/tar.hpp"

namespace {

void list(const std::string& archive) {
  using namespace shard::convert;
  const TarListing found = list_tar(
      [&](std::uint64_t offset, std::span<std::byte> out) {
        if (offset > archive.size()) std::abort();
        const std::size_t count = std::min(out.size(), archive.size() - static_cast<std::size_t>(offset));
        std::memcpy(out.data(), archive.data() + offset, count);
        return count;
      },
      archive.size());
  for (const TarMember& member : found.members) {
    if (!member.problem.empty()) continue;
    if (member.offset > archive.size() || member.size_bytes > archive.size() - member.offset) std::abort();
    if (member.name.empty() || member.name.front() == '/' || member.name.find('\0') != std::string::npos)
      std::abort();
    if (("/" + member.name + "/").find("/../") != std::string::npos) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string archive(reinterpret_cast<const char*>(data), size);
  list(archive);
  for (std::size_t block = 0; block + 512 <= archive.size(); block += 512) {
    std::fill_n(archive.begin() + static_cast<std::ptrdiff_t>(block) + 148, 8, ' ');
    unsigned sum = 0;
    for (std::size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(archive[block + i]);
    char text[9];
    std::snprintf(text, sizeof text, "%06o", sum);
    std::memcpy(&archive[block + 148], text, 7);
  }
  list(archive);
  return 0;
}
