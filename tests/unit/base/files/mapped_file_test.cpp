// A process has a limited number of mappings.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <fstream>
#include <vector>

#include "shard/shard_reader.hpp"
#include "support/format/shard_samples.hpp"
#include "support/rounds.hpp"
#include "support/temp_dir.hpp"

namespace shard {
namespace {

using namespace shard::testing;

TEST(MappedFile, TooManyMappingsIsAnErrorThatNamesTheSysctl) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer maps memory itself";
  std::uint64_t limit = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> limit;
  if (limit == 0 || limit > 300'000) GTEST_SKIP() << "vm.max_map_count is " << limit;
  const TempDir dir;
  write_shard(dir.path() / "shard", small_options(), 2);
  constexpr std::size_t kPage = 4096;
  const std::size_t bytes = (limit + 2) * kPage;
  void* const all = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(all, MAP_FAILED);
  // Every other page has other rights: a mapping of its own.
  bool full = false;
  for (std::size_t at = 0; at + kPage < bytes && !full; at += 2 * kPage)
    full = ::mprotect(static_cast<std::byte*>(all) + at, kPage, PROT_READ) != 0;
  EXPECT_TRUE(full);
  std::string said;
  try {
    std::vector<ShardReader> readers;  // the last mappings
    for (int i = 0; i < 4; ++i) readers.push_back(ShardReader::open(dir.path() / "shard"));
  } catch (const Error& error) {
    said = error.what();
    EXPECT_EQ(error.code(), ErrorCode::resource);
  }
  ::munmap(all, bytes);
  EXPECT_NE(said.find("vm.max_map_count is " + std::to_string(limit)), std::string::npos) << said;
  EXPECT_NE(said.find("sysctl -w vm.max_map_count="), std::string::npos) << said;
  EXPECT_NO_THROW(ShardReader::open(dir.path() / "shard"));
}

}  // namespace
}  // namespace shard
