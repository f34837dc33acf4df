// What is known of the filesystem under a path, and what is said about it.
#include "base/files/disk.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "support/temp_dir.hpp"

namespace shard::testing {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kGib = std::uint64_t{1} << 30U;

TEST(FindMount, TakesTheLastOfTheLongestMountPointAbove) {
  const std::string mounts =
      "1 0 259:2 / / rw - ext4 /dev/root rw\n"
      "2 1 0:40 / /data rw shared:1 - nfs4 server:/export rw\n"
      "3 2 8:1 / /data/my\\040disk rw - xfs /dev/sda1 rw\n"
      "4 1 0:41 / /data rw - nfs4 newer:/export rw\n"
      "a line that is none\n";
  EXPECT_EQ(find_mount(mounts, "/data/my disk/x")->source, "/dev/sda1");
  EXPECT_EQ(find_mount(mounts, "/data/my disk/x")->device, "8:1");
  EXPECT_EQ(find_mount(mounts, "/data/my")->source, "newer:/export");
  EXPECT_EQ(find_mount(mounts, "/data")->type, "nfs4");
  EXPECT_EQ(find_mount(mounts, "/database")->type, "ext4");
  EXPECT_FALSE(find_mount("", "/data"));
}

TEST(ReadDisk, SaysWhatIsFreeAndLeavesNothingBehind) {
  const TempDir dir;
  const Disk disk = read_disk(dir.path());
  EXPECT_EQ(disk.problem, "");
  EXPECT_EQ(disk.size_bytes, fs::space(dir.path()).capacity);
  EXPECT_LE(disk.free_bytes, disk.size_bytes);
  EXPECT_GT(disk.block_bytes, 0U);
  EXPECT_NE(disk.direct, "");
  EXPECT_TRUE(fs::is_empty(dir.path()));
  EXPECT_EQ(read_disk(dir.path() / "absent").problem, "No such file or directory");
}

Disk good_disk() {
  Disk disk;
  disk.type = "ext4";
  disk.source = "/dev/nvme0n1p2";
  disk.size_bytes = 100 * kGib;
  disk.free_bytes = 10 * kGib;
  disk.rotational = false;
  disk.direct = "works";
  return disk;
}

TEST(CheckDisk, HasNoAdviceForALocalSsd) {
  const auto checks = check_disk("/data", good_disk());
  ASSERT_EQ(checks.size(), 2U);
  EXPECT_EQ(checks[0].is, "\"/data\": ext4 on /dev/nvme0n1p2, 10.0 GiB free of 100.0 GiB");
  EXPECT_EQ(checks[0].advice, "");
  EXPECT_EQ(checks[1].advice, "");
}

TEST(CheckDisk, SaysWhatToDoAboutAFullOneAndOneThatRotatesOrIsOnAnotherMachine) {
  const auto advice = [](auto change) {
    Disk disk = good_disk();
    change(disk);
    return check_disk("/data", disk).front().advice;
  };
  EXPECT_NE(advice([](Disk& disk) { disk.free_bytes = kGib - 1; }).find("free some space"),
            std::string::npos);
  EXPECT_EQ(advice([](Disk& disk) { disk.free_bytes = kGib; }), "");
  EXPECT_NE(advice([](Disk& disk) { disk.rotational = true; }).find("SSD"), std::string::npos);
  EXPECT_NE(advice([](Disk& disk) { disk.type = "nfs4"; }).find("shardctl copy"), std::string::npos);
  // A virtual disk says that it rotates, whatever is under it.
  EXPECT_EQ(advice([](Disk& disk) {
              disk.rotational = true;
              disk.source = "/dev/vda1";
            }),
            "");
}

TEST(CheckDisk, AdvisesAnotherFilesystemOnlyWhereODirectIsRefused) {
  const auto advice = [](const char* type, const char* direct) {
    Disk disk = good_disk();
    disk.type = type;
    disk.direct = direct;
    return check_disk("/data", disk).back().advice;
  };
  EXPECT_NE(advice("overlay", "refused by this filesystem").find("ext4 or XFS"), std::string::npos);
  EXPECT_EQ(advice("tmpfs", "refused by this filesystem"), "");
  EXPECT_EQ(advice("ext4", "not known: Permission denied"), "");
}

TEST(CheckDisk, NamesTheFolderThatIsNotThere) {
  Disk disk;
  disk.problem = "No such file or directory";
  const auto checks = check_disk("/absent", disk);
  ASSERT_EQ(checks.size(), 1U);
  EXPECT_EQ(checks[0].is, "\"/absent\": No such file or directory");
  EXPECT_NE(checks[0].advice.find("a folder that exists"), std::string::npos);
}

}  // namespace
}  // namespace shard::testing
