// Rank and world size as launchers hand them to a process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace shard::convert {

struct RankAndSize {
  std::uint32_t rank = 0;
  std::uint32_t world_size = 1;
  // The variables it was read from, with their values.
  std::string source;
  // The launcher ends every process as soon as one returns another exit code than 0 (mpirun, torchrun).
  bool all_or_none = false;
};

// Where this process stands among those that share the work; nothing when no launcher says so. In this order:
//
//   launched together   OMPI_COMM_WORLD_RANK/_SIZE (Open MPI), PMI_RANK/PMI_SIZE (MPICH, Intel MPI),
//                       RANK/WORLD_SIZE beside TORCHELASTIC_RUN_ID (torchrun),
//                       SLURM_PROCID/SLURM_STEP_NUM_TASKS
//   as members of       SLURM_ARRAY_TASK_ID/_MIN/_STEP/_COUNT, AWS_BATCH_JOB_ARRAY_INDEX/_SIZE. With one of
//   the an array            above as well, the ranks of the first member come first, then those of the second
//   by hand             RANK/WORLD_SIZE; beside one of the above they must say the same
//   a rank alone        PMIX_RANK, JOB_COMPLETION_INDEX (Kubernetes): the world size comes from `world_size`
//
// SLURM_PROCID counts inside a step that srun made only: a batch script and a shell of salloc have it, or
// SLURM_NTASKS, too, and run one process.
//
// `world_size`: the world size that was asked for (--world-size), which must not differ from the launcher's. Throws
// invalid_argument when a variable is not a number or is missing beside its partner, when two say different
// things, when rank >= world, or when only a rank is known.
std::optional<RankAndSize> placement_from_environment(std::optional<std::uint32_t> world = std::nullopt);

}  // namespace shard::convert
