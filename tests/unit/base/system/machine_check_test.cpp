// What is said about CPUs, memory, open files and io_uring.
#include "base/system/machine_check.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "support/temp_dir.hpp"

namespace shard::testing {
namespace {

constexpr std::uint64_t kGib = std::uint64_t{1} << 30U;
constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

MachineFacts good_machine() {
  MachineFacts facts;
  facts.cpus_online = facts.cpus = 16;
  facts.memory_bytes = 64 * kGib;
  facts.available_bytes = 60 * kGib;
  facts.cgroup_available_bytes = kNone;
  facts.descriptors = facts.descriptors_most = 65536;
  return facts;
}

enum Line { cpus, memory, descriptors };

template <class Change>
MachineCheck changed(Line line, Change change) {
  MachineFacts facts = good_machine();
  change(facts);
  return check_machine(facts).at(line);
}

void expect_in(const std::string& piece, const std::string& text) {
  EXPECT_NE(text.find(piece), std::string::npos) << text;
}

TEST(CheckMachine, HasNoAdviceWhereEverythingIsAsItShouldBe) {
  const auto checks = check_machine(good_machine());
  ASSERT_EQ(checks.size(), 3U);
  for (const MachineCheck& check : checks) {
    EXPECT_EQ(check.advice, "") << check.name;
    EXPECT_NE(check.is, "");
    EXPECT_NE(check.should_be, "");
  }
}

TEST(CheckMachine, NamesTheNumberOfThreadsThatAQuotaAllows) {
  const MachineCheck check = changed(cpus, [](MachineFacts& facts) { facts.cpu_quota = 3.5; });
  expect_in("16 of 16 online; the control group's quota is 3.5", check.is);
  expect_in("OMP_NUM_THREADS=3", check.advice);
  EXPECT_EQ(changed(cpus, [](MachineFacts& facts) { facts.cpu_quota = 16; }).advice, "");
}

TEST(CheckMachine, AsksForMoreCpusWhereTheProcessHasOne) {
  expect_in("--cpus-per-task", changed(cpus, [](MachineFacts& facts) { facts.cpus = 1; }).advice);
  EXPECT_EQ(changed(cpus, [](MachineFacts& facts) { facts.cpus = 2; }).advice, "");
  expect_in("a machine with more CPUs",
            changed(cpus, [](MachineFacts& facts) { facts.cpus = facts.cpus_online = 1; }).advice);
}

TEST(CheckMachine, TellsTheLimitOfAControlGroupFromALackOfMemory) {
  const MachineCheck granted =
      changed(memory, [](MachineFacts& facts) { facts.cgroup_available_bytes = kGib / 2; });
  expect_in("the control group leaves 0.50 GiB", granted.is);
  expect_in("docker --memory", granted.advice);
  const MachineCheck full = changed(memory, [](MachineFacts& facts) { facts.available_bytes = kGib - 1; });
  expect_in("no limit of a control group", full.is);
  expect_in("end other programs", full.advice);
}

TEST(CheckMachine, SaysHowToRaiseTheLimitOfOpenFiles) {
  const MachineCheck soft = changed(descriptors, [](MachineFacts& facts) {
    facts.descriptors = 1024;
    facts.descriptors_most = 524288;
  });
  expect_in("1024 at most; may be raised to 524288", soft.is);
  expect_in("ulimit -n 65536", soft.advice);
  expect_in("LimitNOFILE", changed(descriptors, [](MachineFacts& facts) {
                             facts.descriptors = facts.descriptors_most = 1024;
                           }).advice);
  expect_in("no limit", changed(descriptors, [](MachineFacts& facts) {
                          facts.descriptors = facts.descriptors_most = kNone;
                        }).is);
}

TEST(CheckUring, SaysWhyItCannotBeUsedAndWhatThatMeans) {
  EXPECT_EQ(check_uring("").advice, "");
  const MachineCheck check = check_uring("io_uring_setup: Operation not permitted");
  expect_in("Operation not permitted", check.is);
  expect_in("kernel.io_uring_disabled", check.advice);
}

TEST(ReadMachine, ReadsWhatTheKernelWrites) {
  const TempDir dir;
  std::filesystem::create_directories(dir.path() / "proc");
  std::ofstream(dir.path() / "proc/meminfo")
      << "MemTotal:       8388608 kB\nMemFree:  1 kB\nMemAvailable:    2097152 kB\n";
  const MachineFacts facts = read_machine(dir.path());
  EXPECT_EQ(facts.memory_bytes, 8 * kGib);
  EXPECT_EQ(facts.available_bytes, 2 * kGib);
  EXPECT_EQ(facts.cgroup_available_bytes, kNone);
  EXPECT_GE(facts.cpus, 1U);
  EXPECT_GT(facts.descriptors, 0U);
  EXPECT_LE(facts.descriptors, facts.descriptors_most);
}

TEST(InGib, HasTheDigitsThatMatter) {
  EXPECT_EQ(in_gib(0), "0.0 GiB");
  EXPECT_EQ(in_gib(kGib / 2), "0.50 GiB");
  EXPECT_EQ(in_gib(23 * kGib / 2), "11.5 GiB");
}

}  // namespace
}  // namespace shard::testing
