// Temporary files of other nodes, and what is stale.
#include <gtest/gtest.h>
#include <sys/file.h>

#include <chrono>
#include <set>

#include "base/files/publish.hpp"
#include "base/files/temp_file.hpp"
#include "support/format/shard_samples.hpp"
#include "support/temp_dir.hpp"

namespace shard {
namespace {

using namespace shard::testing;

// ".NAME.HOST-BOOT.PID.RANDOM.part" with other values for HOST and BOOT.
std::string from_elsewhere(const std::string& own, const std::string& host, const std::string& boot) {
  const auto pid_at = own.rfind('.', own.rfind('.', own.rfind('.') - 1) - 1);  // ".PID.RANDOM.part"
  const auto node_at = own.rfind('.', pid_at - 1);
  const std::string node = own.substr(node_at + 1, pid_at - node_at - 1);
  const auto dash = node.rfind('-');
  return own.substr(0, node_at + 1) + (host.empty() ? node.substr(0, dash) : host) + "-" +
         (boot.empty() ? node.substr(dash + 1) : boot) + own.substr(pid_at);
}

void set_age(const std::filesystem::path& path, std::chrono::seconds age) {
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - age);
}

TEST(TempFile, OfOtherNodesIsStaleOnlyWhenItIsOld) {
  const TempDir dir;
  std::string own;
  {
    const TempFile file(dir.path() / "shard");
    own = *testing::names_in(dir.path()).begin();
  }
  ASSERT_TRUE(is_temporary_name(own));
  const std::string other = from_elsewhere(own, "other-node", "");
  const std::string same_name =
      from_elsewhere(own, "", "00000000");  // another node, or an earlier boot of this one
  const auto old = std::chrono::hours(kStaleHours) + std::chrono::minutes(1);
  for (const std::string& name : {other, same_name}) {
    ASSERT_TRUE(is_temporary_name(name)) << name;
    write_bytes(dir.path() / name, {});
    EXPECT_EQ(remove_stale_temporaries(dir.path()), 0U) << name;
    set_age(dir.path() / name, old);
    const UniqueFd held = open_read(dir.path() / name);
    ASSERT_EQ(::flock(held.get(), LOCK_EX), 0);
    EXPECT_EQ(remove_stale_temporaries(dir.path()), 0U) << name << " is locked";
    ASSERT_EQ(::flock(held.get(), LOCK_UN), 0);
    EXPECT_EQ(remove_stale_temporaries(dir.path()), 1U) << name;
  }
  write_bytes(dir.path() / own, {});
  EXPECT_EQ(remove_stale_temporaries(dir.path()), 1U);
}

}  // namespace
}  // namespace shard
