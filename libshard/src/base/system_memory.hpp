// How much memory this process may still use, and with how many of its kind it shares it.
#pragma once

#include <cstdint>
#include <filesystem>

namespace shard {

// Bytes that can still be had without swapping: the least of MemAvailable and, for the memory cgroup of this
// process (version 1 or 2) and each of its ancestors, its limit less what is used. Page cache counts as
// available there, except for what is dirty or being written: the kernel drops it when memory is asked for. A
// large number where nothing is known. `root`: as for cgroup_folders().
std::uint64_t available_memory_bytes(const std::filesystem::path& root = "/");

// The part of it that memory cgroups decide; a large number where none has a limit.
std::uint64_t cgroup_available_bytes(const std::filesystem::path& root = "/");

// How many processes of this job run on this machine, as their launcher says: LOCAL_WORLD_SIZE (torchrun),
// OMPI_COMM_WORLD_LOCAL_SIZE (Open MPI), MPI_LOCALNRANKS (MPICH, Intel MPI), SLURM_STEP_TASKS_PER_NODE or
// SLURM_NTASKS_PER_NODE (srun; also of the form "4(x2),3"); the first that is set and valid. 1: none is.
std::uint64_t local_rank_count(const char* (*environment)(const char* name) = nullptr);

// The memory that a rank may register by default: half of what is available, in equal parts for the local
// ranks.
std::uint64_t default_memory_budget_bytes();

}  // namespace shard
