#include "harness/gpu_facts.hpp"

#include <dlfcn.h>

#include <fstream>

namespace shard::bench {
namespace {

using Json = nlohmann::ordered_json;

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

// GT/s, and the bytes per second of a lane by line code: 8b/10b, 128b/130b, and flits of 256 bytes that carry
// 242.
struct PcieGeneration {
  double rate, lane;
};
constexpr PcieGeneration kGenerations[] = {{2.5, 2.5e9 * 8 / 10 / 8},  {5, 5e9 * 8 / 10 / 8},
                                           {8, 8e9 * 128 / 130 / 8},   {16, 16e9 * 128 / 130 / 8},
                                           {32, 32e9 * 128 / 130 / 8}, {64, 64e9 * 242 / 256 / 8}};

}  // namespace

Json read_pcie_link(const std::filesystem::path& folder, const std::string& which) {
  double rate = 0;  // "32.0 GT/s PCIe", "Unknown"
  int width = 0;    // 255 where the kernel does not know
  std::ifstream(folder / (which + "_link_speed")) >> rate;
  std::ifstream(folder / (which + "_link_width")) >> width;
  if (width < 1 || width > 32) width = 0;
  int generation = 0;
  for (int g = 1; g <= 6; ++g)
    if (rate > 0.95 * kGenerations[g - 1].rate && rate < 1.05 * kGenerations[g - 1].rate) generation = g;
  return {{"generation", generation},
          {"width", width},
          {"bytes_per_second", generation == 0 ? 0.0 : kGenerations[generation - 1].lane * width}};
}

Json gpu_report() {
  const bool cufile = can_load("libcufile.so.0") || can_load("/usr/local/cuda/lib64/libcufile.so.0");
  Json report{{"devices", Json::array()},
              {"absent", "this shardbench was built without CUDA"},
              {"driver", ""},
              {"runtime", ""},
              {"gpudirect_storage", {{"libcufile", cufile}, {"nvidia_fs", nvidia_fs_version()}}}};
#ifdef SHARD_WITH_CUDA
  detail::add_cuda_gpus(report);
#endif
  return report;
}

}  // namespace shard::bench
