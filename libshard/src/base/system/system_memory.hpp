// How much memory this process may still use, and how many processes of its job share it.
#pragma once

#include <cstdint>
#include <filesystem>

namespace shard {

// Bytes that can be allocated without swapping: the least of MemAvailable and, for the memory cgroup (version
// 1 or 2) of this process and each of its ancestors, the limit less the used memory. Page cache counts as
// available there, unless it is dirty or being written, because the kernel drops it when memory is needed. A
// large number if nothing is known. `root`: as for cgroup_folders().
std::uint64_t available_memory_bytes(const std::filesystem::path& root = "/");

// The same for the memory cgroups alone. A large number if none has a limit.
std::uint64_t cgroup_available_bytes(const std::filesystem::path& root = "/");

// How many processes of this job run on this machine. The first of these variables that is set and valid
// counts: LOCAL_WORLD_SIZE (torchrun), OMPI_COMM_WORLD_LOCAL_SIZE (Open MPI), MPI_LOCALNRANKS (MPICH, Intel
// MPI), SLURM_STEP_TASKS_PER_NODE or SLURM_NTASKS_PER_NODE (srun; also of the form "4(x2),3"). 1 if there is
// none.
std::uint64_t local_rank_count(const char* (*environment)(const char* name) = nullptr);

// The memory that a rank may register by default: half of the available memory, divided equally between the
// local ranks.
std::uint64_t default_memory_budget_bytes();

}  // namespace shard
