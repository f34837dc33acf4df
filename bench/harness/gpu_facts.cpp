#include "harness/gpu_facts.hpp"

#include <dlfcn.h>

#include <filesystem>
#include <fstream>

namespace shard::bench {
namespace {

bool can_load(const char* library) {
  void* const handle = ::dlopen(library, RTLD_LAZY | RTLD_LOCAL);
  if (handle != nullptr) ::dlclose(handle);
  return handle != nullptr;
}

std::string nvidia_fs_version() {
  for (const char* file : {"/sys/module/nvidia_fs/version", "/proc/driver/nvidia-fs/version"}) {
    std::ifstream in(file);
    if (std::string line; std::getline(in, line)) return line;
  }
  std::error_code ignored;
  return std::filesystem::exists("/sys/module/nvidia_fs", ignored) ? "of unknown version" : "";
}

}  // namespace

GpuReport gpu_report() {
  GpuReport report;
  report.cufile = can_load("libcufile.so.0") || can_load("/usr/local/cuda/lib64/libcufile.so.0");
  report.nvidia_fs = nvidia_fs_version();
#ifdef SHARD_WITH_CUDA
  detail::add_cuda_gpus(report);
#else
  report.absent = "this shardbench was built without CUDA";
#endif
  return report;
}

}  // namespace shard::bench
