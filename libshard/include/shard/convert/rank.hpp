// Rank and world size that a launcher gave to this process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "shard/error.hpp"

namespace shard::convert {

struct RankAndSize {
  std::uint32_t rank = 0;
  std::uint32_t world_size = 1;
  // The variables it was read from, with their values.
  std::string source;
  // The launcher ends all processes as soon as one returns an exit code other than 0 (mpirun, torchrun).
  bool all_or_none = false;
};

// The rank and world size of this process; nothing if no launcher gave them. The first that is found counts:
//
//   started together    OMPI_COMM_WORLD_RANK/_SIZE (Open MPI), PMI_RANK/PMI_SIZE (MPICH, Intel MPI),
//                       RANK/WORLD_SIZE beside TORCHELASTIC_RUN_ID (torchrun),
//                       SLURM_PROCID/SLURM_STEP_NUM_TASKS
//   members of          SLURM_ARRAY_TASK_ID/_MIN/_STEP/_COUNT, AWS_BATCH_JOB_ARRAY_INDEX/_SIZE. If one of the
//   an array            above is set too, each member runs that many processes: the ranks of the first member
//                       come first, then those of the second
//   set by hand         RANK/WORLD_SIZE; if one of the above is set too, they must agree
//   a rank alone        PMIX_RANK, JOB_COMPLETION_INDEX (Kubernetes); the world size is the parameter
//
// SLURM_PROCID counts only in a step that srun made. A batch script and a shell of salloc have it too (or
// SLURM_NTASKS), but run one process.
//
// `world`: the requested world size (--world-size); it must be the launcher's. Throws invalid_argument if a
// variable is not a number or its partner is missing, if two variables contradict each other, if rank >=
// world size, or if only a rank is known.
std::optional<RankAndSize> rank_from_environment(std::optional<std::uint32_t> world = std::nullopt);

}  // namespace shard::convert
