// A page cache that is really empty.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "limits/page_cache.hpp"
#include "shard/error.hpp"
#include "support/expect_error.hpp"
#include "support/temp_dir.hpp"

namespace shard::bench {
namespace {

namespace fs = std::filesystem;

class PageCache : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(file_, std::ios::binary) << std::string(1 << 20U, 'x');
    if (is_memory(dir_.path())) GTEST_SKIP() << "the folder for temporary files is memory";
    const int fd = ::open(file_.c_str(), O_RDONLY | O_CLOEXEC);
    ::fsync(fd);
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    ::close(fd);
    if (cache_state(files()).share() > 0) GTEST_SKIP() << "the system does not drop, or does not say";
  }
  std::vector<fs::path> files() const { return {file_}; }
  testing::TempDir dir_;
  fs::path file_ = dir_.path() / "file";
};

TEST_F(PageCache, IsEmptyOfTheseFilesAfterADropAndFullAfterARead) {
  const fs::path other = dir_.path() / "other";
  std::ofstream(other, std::ios::binary) << std::string(1 << 20U, 'y');
  const std::vector<fs::path> others{other};
  warm_cache(others);
  warm_cache(files());
  EXPECT_EQ(cache_state(files()).share(), 1);
  EXPECT_EQ(drop_cache(files()).share(), 0);
  EXPECT_EQ(cache_state(others).share(), 1);  // not these
}

TEST_F(PageCache, SaysWhatCouldNotBeDropped) {
  const int fd = ::open(file_.c_str(), O_RDONLY | O_CLOEXEC);
  void* const mapped = ::mmap(nullptr, 1 << 20U, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
  ::close(fd);
  ASSERT_NE(mapped, MAP_FAILED);
  EXPECT_GT(drop_cache(files()).share(), 0.9);
  ::munmap(mapped, 1 << 20U);
  EXPECT_EQ(drop_cache(files()).share(), 0);
}

TEST(PageCacheErrors, NameTheFile) {
  const std::vector<fs::path> absent{"/nowhere/at-all"};
  EXPECT_SHARD_ERROR(drop_cache(absent), ErrorCode::not_found, "/nowhere/at-all");
}

}  // namespace
}  // namespace shard::bench
