// A member of a tar archive, of the old format: its header, and its bytes in whole blocks.
#pragma once

#include <fmt/format.h>

#include <string>

namespace shard::testing {

inline std::string tar_member(const std::string& name, const std::string& bytes) {
  std::string block(512, '\0');
  block.replace(0, name.size(), name);
  block.replace(124, 12, fmt::format("{:011o} ", bytes.size()));
  block.replace(148, 8, "        ");
  block[156] = '0';
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  block.replace(148, 7, fmt::format("{:06o} ", sum));
  block += bytes;
  block.resize((block.size() + 511) / 512 * 512, '\0');
  return block;
}

}  // namespace shard::testing
