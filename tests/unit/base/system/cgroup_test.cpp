// CPUs and memory that this process may use under cgroups of version 1 and 2, on a made-up /proc and /sys.
#include <gtest/gtest.h>
#include <sched.h>

#include <fstream>
#include <limits>
#include <string>

#include "base/system/cgroup.hpp"
#include "base/system/cpu_count.hpp"
#include "base/system/system_memory.hpp"
#include "support/temp_dir.hpp"

namespace shard::testing {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;

class FakedRoot : public ::testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((dir_.path() / file).parent_path());
    std::ofstream(dir_.path() / file) << text;
  }
  void memory(const std::string& folder, const std::string& max, std::uint64_t current,
              const std::string& stat = "") const {
    write(folder + "/memory.max", max + "\n");
    write(folder + "/memory.current", std::to_string(current) + "\n");
    write(folder + "/memory.stat", stat);
  }
  void version2(const std::string& group, const std::string& mount_root = "/") const {
    write("proc/self/cgroup", "0::" + group + "\n");
    write("proc/self/mountinfo",
          "22 1 0:21 / / rw - overlay overlay rw\n"
          "36 25 0:32 " +
              mount_root + " /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n");
    write("proc/meminfo", "MemTotal: 99999999 kB\nMemAvailable:   67108864 kB\n");  // 64 GiB
  }
  void version1() const {
    write("proc/self/cgroup", "5:cpu,cpuacct:/job\n4:memory:/job/step\n1:name=systemd:/x\n");
    write("proc/self/mountinfo",
          "40 30 0:40 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
          "41 30 0:41 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    write("proc/meminfo", "MemAvailable: 67108864 kB\n");
  }
  std::uint64_t available() const { return available_memory_bytes(dir_.path()); }
  unsigned cpus() const { return cpu_count(dir_.path()); }

  TempDir dir_;
};

unsigned cpus_of_this_thread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  return static_cast<unsigned>(CPU_COUNT(&set));
}

TEST_F(FakedRoot, MemoryIsWhatTheMachineHasWhereNoGroupLimitsIt) {
  version2("/a/b");
  EXPECT_EQ(available(), 64 * kGiB);
  memory("sys/fs/cgroup/a/b", "max", 5 * kGiB);
  EXPECT_EQ(available(), 64 * kGiB);
}

TEST_F(FakedRoot, TheTightestAncestorDecides) {
  version2("/a/b/c");
  memory("sys/fs/cgroup/a/b/c", std::to_string(40 * kGiB), kGiB);
  memory("sys/fs/cgroup/a/b", "max", 2 * kGiB);
  memory("sys/fs/cgroup/a", std::to_string(16 * kGiB), 6 * kGiB);
  EXPECT_EQ(available(), 10 * kGiB);
  memory("sys/fs/cgroup", std::to_string(8 * kGiB), 7 * kGiB);
  EXPECT_EQ(available(), kGiB);
  memory("sys/fs/cgroup", std::to_string(8 * kGiB), 9 * kGiB);
  EXPECT_EQ(available(), 0U);
}

TEST_F(FakedRoot, PageCacheCountsAsAvailableUnlessItIsDirty) {
  version2("/job");
  const std::string cache = "anon " + std::to_string(2 * kGiB) + "\nfile " + std::to_string(9 * kGiB) +
                            "\nshmem " + std::to_string(3 * kGiB) + "\nfile_mapped 4096\nfile_dirty " +
                            std::to_string(kGiB) + "\nfile_writeback 0\ninactive_file " +
                            std::to_string(5 * kGiB) + "\nactive_file " + std::to_string(kGiB) + "\n";
  memory("sys/fs/cgroup/job", std::to_string(12 * kGiB), 11 * kGiB, cache);
  EXPECT_EQ(available(), 6 * kGiB);  // 1 free, and 6 of cache less 1 that is dirty
}

TEST_F(FakedRoot, MemoryHighIsALimitToo) {
  version2("/job");
  memory("sys/fs/cgroup/job", "max", kGiB);
  write("sys/fs/cgroup/job/memory.high", std::to_string(3 * kGiB));
  EXPECT_EQ(available(), 2 * kGiB);
}

// Without a cgroup namespace a container sees its group as the root of the mount, and its path from outside.
TEST_F(FakedRoot, AContainerFindsItsGroupAtTheRootOfTheMount) {
  version2("/docker/4711/inner", "/docker/4711");
  memory("sys/fs/cgroup", std::to_string(4 * kGiB), kGiB);
  EXPECT_EQ(available(), 3 * kGiB);
  memory("sys/fs/cgroup/inner", std::to_string(2 * kGiB), kGiB);
  EXPECT_EQ(available(), kGiB);
  version2("/somewhere/else", "/docker/4711");
  EXPECT_EQ(available(), 3 * kGiB);
  version2("/../../outside");
  EXPECT_EQ(available(), 3 * kGiB);
}

TEST_F(FakedRoot, VersionOneIsReadWithItsAncestors) {
  version1();
  const std::string folder = "sys/fs/cgroup/memory";
  write(folder + "/job/step/memory.limit_in_bytes", "9223372036854771712\n");
  write(folder + "/job/step/memory.usage_in_bytes", "4096\n");
  write(folder + "/job/memory.limit_in_bytes", std::to_string(8 * kGiB));
  write(folder + "/job/memory.usage_in_bytes", std::to_string(6 * kGiB));
  EXPECT_EQ(available(), 2 * kGiB);
  write(folder + "/job/memory.stat", "inactive_file 1\nactive_file 1\ntotal_inactive_file " +
                                         std::to_string(3 * kGiB) + "\ntotal_active_file " +
                                         std::to_string(kGiB) + "\ntotal_dirty 0\n");
  EXPECT_EQ(available(), 6 * kGiB);
}

TEST_F(FakedRoot, WhatCannotBeReadIsNoLimit) {
  EXPECT_EQ(available(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(cpus(), cpus_of_this_thread());
  version2("/job");
  write("sys/fs/cgroup/job/memory.max", "nonsense");
  write("sys/fs/cgroup/job/cpu.max", "-5 x");
  EXPECT_EQ(available(), 64 * kGiB);
  EXPECT_EQ(cpus(), cpus_of_this_thread());
}

TEST_F(FakedRoot, TheCpuQuotaOfAnyAncestorBoundsTheCpus) {
  version2("/a/b");
  write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(cpus(), cpus_of_this_thread());
  EXPECT_EQ(cpu_quota(dir_.path()), 0);
  write("sys/fs/cgroup/a/cpu.max", "50000 100000\n");
  EXPECT_EQ(cpu_quota(dir_.path()), 0.5);
  EXPECT_EQ(cpus(), 1U) << "rounded up";
  write("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  EXPECT_EQ(cpu_quota(dir_.path()), 1.5);
  EXPECT_EQ(cpus(), std::min(2U, cpus_of_this_thread()));
  write("sys/fs/cgroup/a/cpu.max", "99900000 100000\n");
  EXPECT_EQ(cpus(), std::min(999U, cpus_of_this_thread()));
}

TEST_F(FakedRoot, TheCpuQuotaOfVersionOne) {
  version1();
  write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpus(), cpus_of_this_thread());
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "100000\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpus(), 1U);
}

}  // namespace
}  // namespace shard::testing
