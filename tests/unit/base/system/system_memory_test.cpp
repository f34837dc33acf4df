// Local ranks, which share the memory of the machine.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/system/system_memory.hpp"

namespace shard::testing {
namespace {

std::map<std::string, std::string> g_variables;
const char* variable(const char* name) {
  const auto found = g_variables.find(name);
  return found == g_variables.end() ? nullptr : found->second.c_str();
}
std::uint64_t ranks_with(std::map<std::string, std::string> variables) {
  g_variables = std::move(variables);
  return local_rank_count(&variable);
}

TEST(LocalRanks, AreWhatTheLauncherSays) {
  EXPECT_EQ(ranks_with({}), 1U);
  EXPECT_EQ(ranks_with({{"LOCAL_WORLD_SIZE", "8"}, {"SLURM_NTASKS_PER_NODE", "1"}}), 8U);
  EXPECT_EQ(ranks_with({{"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}), 4U);
  EXPECT_EQ(ranks_with({{"MPI_LOCALNRANKS", "2"}}), 2U);
  EXPECT_EQ(ranks_with({{"SLURM_NTASKS_PER_NODE", "4"}}), 4U);
}

TEST(LocalRanks, OfSlurmAreReadFromItsLists) {
  EXPECT_EQ(ranks_with({{"SLURM_NTASKS_PER_NODE", "4(x2)"}}), 4U);
  const auto on_node = [](const char* node) {
    return ranks_with({{"SLURM_STEP_TASKS_PER_NODE", "4(x2),3,2(x10)"}, {"SLURM_NODEID", node}});
  };
  EXPECT_EQ(on_node("0"), 4U);
  EXPECT_EQ(on_node("1"), 4U);
  EXPECT_EQ(on_node("2"), 3U);
  EXPECT_EQ(on_node("3"), 2U);
  EXPECT_EQ(on_node("99"), 2U);
}

TEST(LocalRanks, NonsenseIsOverlooked) {
  for (const char* text : {"", "0", "-1", "x", "4(x", "4(x0)", "4;5", "99999999999999999999", "5000"})
    EXPECT_EQ(ranks_with({{"LOCAL_WORLD_SIZE", text}, {"SLURM_NTASKS_PER_NODE", text}}), 1U) << text;
  EXPECT_EQ(ranks_with({{"LOCAL_WORLD_SIZE", "4(x2)"}, {"MPI_LOCALNRANKS", "3"}}), 3U);
}

}  // namespace
}  // namespace shard::testing
