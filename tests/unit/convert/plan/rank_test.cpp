// Rank and world size by the variables of launchers.
#include <gtest/gtest.h>

#include <cstdlib>

#include "shard/convert/rank.hpp"
#include "shard/error.hpp"
#include "support/expect_error.hpp"

namespace shard::convert {
namespace {

class Launcher : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"OMPI_COMM_WORLD_RANK",
                             "OMPI_COMM_WORLD_SIZE",
                             "OMPI_MCA_ess_base_jobid",
                             "PMI_RANK",
                             "PMI_SIZE",
                             "PMI_FD",
                             "PMI_PORT",
                             "PMIX_RANK",
                             "PMIX_NAMESPACE",
                             "SLURM_PROCID",
                             "SLURM_NTASKS",
                             "SLURM_STEP_ID",
                             "SLURM_STEP_NUM_TASKS",
                             "SLURM_ARRAY_TASK_ID",
                             "SLURM_ARRAY_TASK_COUNT",
                             "SLURM_ARRAY_TASK_MIN",
                             "SLURM_ARRAY_TASK_MAX",
                             "SLURM_ARRAY_TASK_STEP",
                             "RANK",
                             "WORLD_SIZE",
                             "TORCHELASTIC_RUN_ID",
                             "JOB_COMPLETION_INDEX",
                             "AWS_BATCH_JOB_ARRAY_INDEX",
                             "AWS_BATCH_JOB_ARRAY_SIZE"})
      ::unsetenv(name);
  }
  void TearDown() override { SetUp(); }

  using Variables = std::vector<std::pair<const char*, const char*>>;
  static void set(const Variables& variables) {
    for (const auto& [name, value] : variables) ::setenv(name, value, 1);
  }
  // "rank/world", with '*' when the launcher ends all processes together; "none".
  std::string placed(const Variables& variables, std::optional<std::uint32_t> world = std::nullopt) {
    SetUp();
    set(variables);
    const auto found = rank_from_environment(world);
    if (!found) return "none";
    return std::to_string(found->rank) + "/" + std::to_string(found->world_size) +
           (found->all_or_none ? "*" : "");
  }
  void refused(const Variables& variables, const std::string& piece,
               std::optional<std::uint32_t> world = {}) {
    SetUp();
    set(variables);
    EXPECT_SHARD_ERROR(rank_from_environment(world), ErrorCode::invalid_argument, piece);
  }

  const Variables step_{
      {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "5"}, {"SLURM_STEP_NUM_TASKS", "5"}};
  const Variables array_{{"SLURM_ARRAY_TASK_ID", "7"},
                         {"SLURM_ARRAY_TASK_COUNT", "3"},
                         {"SLURM_ARRAY_TASK_MIN", "3"},
                         {"SLURM_ARRAY_TASK_MAX", "11"},
                         {"SLURM_ARRAY_TASK_STEP", "4"}};
  static Variables both(Variables a, const Variables& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
};

TEST_F(Launcher, ReadsEachLaunchersVariables) {
  EXPECT_EQ(placed({}), "none");
  const Variables ompi{{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "5"}};
  EXPECT_EQ(placed(ompi), "2/5");
  EXPECT_EQ(placed(both(ompi, {{"PMIX_NAMESPACE", "1"}, {"PMIX_RANK", "2"}})), "2/5*");
  EXPECT_EQ(placed({{"PMI_RANK", "2"}, {"PMI_SIZE", "5"}}), "2/5");
  EXPECT_EQ(placed({{"PMI_RANK", "2"}, {"PMI_SIZE", "5"}, {"PMI_FD", "9"}}), "2/5*");
  EXPECT_EQ(placed({{"RANK", "2"}, {"WORLD_SIZE", "5"}}), "2/5");
  EXPECT_EQ(placed({{"RANK", "2"}, {"WORLD_SIZE", "5"}, {"TORCHELASTIC_RUN_ID", "none"}}), "2/5*");
  EXPECT_EQ(placed(step_), "2/5");
  EXPECT_EQ(placed(both(step_, {{"PMI_RANK", "2"}, {"PMI_SIZE", "5"}, {"PMI_FD", "9"}})),
            "2/5");  // --mpi=pmi2
  EXPECT_EQ(placed(array_), "1/3");
  EXPECT_EQ(placed({{"AWS_BATCH_JOB_ARRAY_INDEX", "2"}, {"AWS_BATCH_JOB_ARRAY_SIZE", "5"}}), "2/5");
  EXPECT_EQ(placed({{"JOB_COMPLETION_INDEX", "2"}}, 5), "2/5");
  EXPECT_EQ(placed({{"PMIX_RANK", "2"}}, 5), "2/5");
}

TEST_F(Launcher, CountsSlurmInAStepOfSrunOnly) {
  EXPECT_EQ(placed({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}), "none");  // a batch script
  EXPECT_EQ(placed({{"SLURM_NTASKS", "8"}}), "none");                         // a shell of salloc
  for (const char* special : {"4294967290", "4294967291", "4294967292", "batch"})
    EXPECT_EQ(placed({{"SLURM_STEP_ID", special},
                      {"SLURM_PROCID", "0"},
                      {"SLURM_NTASKS", "8"},
                      {"SLURM_STEP_NUM_TASKS", "1"}}),
              "none");
  // A batch script that was submitted from a step of one task has that step's variables.
  EXPECT_EQ(placed({{"SLURM_STEP_ID", "0"},
                    {"SLURM_PROCID", "0"},
                    {"SLURM_NTASKS", "8"},
                    {"SLURM_STEP_NUM_TASKS", "1"}}),
            "none");
  refused(
      {{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "2"}},
      "contradict each other");
}

TEST_F(Launcher, TakesTheInnermostOfSeveralAndMultipliesAnArray) {
  const Variables ompi{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}};
  EXPECT_EQ(placed(both(step_, ompi)), "1/4");  // mpirun starts its daemons with srun
  EXPECT_EQ(placed(both(step_, {{"RANK", "6"}, {"WORLD_SIZE", "10"}, {"TORCHELASTIC_RUN_ID", "x"}})),
            "6/10*");
  EXPECT_EQ(placed(both(array_, step_)), "7/15");
  EXPECT_EQ(placed(both(array_, ompi)), "5/12");
  EXPECT_EQ(placed(both(step_, {{"WORLD_SIZE", "5"}})), "2/5");
}

TEST_F(Launcher, RefusesHalfAPairNonsenseAndContradictions) {
  refused({{"RANK", "1"}}, "RANK is set without WORLD_SIZE");
  refused({{"RANK", "1"}, {"WORLD_SIZE", "1"}}, "must be less than");
  refused({{"RANK", "1"}, {"WORLD_SIZE", "two"}}, "WORLD_SIZE=\"two\"");
  refused({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}, "RANK=\"-1\"");
  refused({{"RANK", "0"}, {"WORLD_SIZE", "99999999999"}}, "is not a number");
  refused({{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}},
          "SLURM_STEP_ID is set without SLURM_PROCID");
  refused({{"SLURM_ARRAY_TASK_ID", "1"}}, "SLURM_ARRAY_TASK_ID is set without SLURM_ARRAY_TASK_COUNT");
  refused({{"AWS_BATCH_JOB_ARRAY_INDEX", "1"}}, "without AWS_BATCH_JOB_ARRAY_SIZE");
  refused(both(array_, {{"SLURM_ARRAY_TASK_COUNT", "2"}}), "not evenly spaced");
  refused(both(array_, {{"SLURM_ARRAY_TASK_ID", "8"}}), "not evenly spaced");
  refused(both(array_, {{"SLURM_ARRAY_TASK_STEP", "0"}}), "not evenly spaced");
  refused(both(step_, {{"RANK", "2"}, {"WORLD_SIZE", "6"}}), "WORLD_SIZE=6 contradicts rank 2 of 5");
  refused({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"JOB_COMPLETION_INDEX", "0"}},
          "JOB_COMPLETION_INDEX=0 contradicts");
  refused({{"RANK", "1"}, {"WORLD_SIZE", "2"}}, "`world_size` 3 contradicts", 3);
  refused({{"JOB_COMPLETION_INDEX", "0"}}, "`world_size` N");
  refused({{"JOB_COMPLETION_INDEX", "5"}}, "must be less than", 5);
}

}  // namespace
}  // namespace shard::convert
