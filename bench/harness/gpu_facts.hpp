// The GPUs that this process may use, and what the loader can use there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/pcie.hpp"

namespace shard::bench {

struct GpuFacts {
  int ordinal = 0;
  std::string name;
  std::uint64_t memory_bytes = 0;
  std::uint64_t free_bytes = 0;
  int compute_major = 0;
  int compute_minor = 0;
  int multiprocessors = 0;
  std::uint64_t clock_hz = 0;  // the highest; 0: not known
  std::string bus_id;          // "0000:17:00.0"
  PcieLinks links;
  bool registers_read_only = false;  // says the platform
  std::string registration;          // what registering a mapped file gave: "works", or the reason why not
  bool batched_copy = false;
};

struct GpuReport {
  std::vector<GpuFacts> gpus;
  std::string absent;           // why there is none; empty where there is one
  std::string driver, runtime;  // "13.0"; empty where there is none
  bool cufile = false;          // libcufile can be loaded: GPUDirect Storage from user space
  std::string nvidia_fs;        // version of the kernel module that it needs, or empty
};

// Never throws for what a platform lacks.
GpuReport gpu_report();

namespace detail {
void add_cuda_gpus(GpuReport& report);  // built with CUDA only
}

}  // namespace shard::bench
