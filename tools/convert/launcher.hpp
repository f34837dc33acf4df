// Rank and world size as launchers hand them to a process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace shard::convert {

struct Placement {
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  std::string source;  // the variables it was read from
};

// The first pair that is set: OMPI_COMM_WORLD_RANK/_SIZE (Open MPI), PMI_RANK/PMI_SIZE (MPICH, Intel MPI),
// SLURM_PROCID/SLURM_NTASKS, RANK/WORLD_SIZE (torchrun). Nothing when none is set. Throws invalid_argument
// when a variable is not a number, its partner is missing, or rank >= world.
std::optional<Placement> placement_from_environment();

}  // namespace shard::convert
