// GPUs as the CUDA runtime describes them.
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <memory>
#include <string>

#include <fmt/core.h>

#include "harness/gpu_facts.hpp"
#include "shard/error.hpp"
#include "shard/loader/cuda_device.hpp"

namespace shard::bench::detail {
namespace {

using Json = nlohmann::ordered_json;

std::string version_text(int version) {
  return version == 0 ? std::string() : fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

int attribute(cudaDeviceAttr which, int ordinal) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, which, ordinal) == cudaSuccess) return value;
  cudaGetLastError();
  return 0;
}

std::string bus_id_of(int ordinal) {
  std::array<char, 32> id{};
  if (cudaDeviceGetPCIBusId(id.data(), static_cast<int>(id.size()) - 1, ordinal) != cudaSuccess) {
    cudaGetLastError();
    return {};
  }
  std::string text = id.data();  // sysfs writes it in lower case
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Registers a page of a mapped file, as the loader registers shards: this program's own.
std::string try_registration(Device& device) {
  const int file = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const mapped = file < 0 ? MAP_FAILED : ::mmap(nullptr, page, PROT_READ, MAP_SHARED, file, 0);
  if (file >= 0) ::close(file);
  if (mapped == MAP_FAILED) return "not tried: /proc/self/exe cannot be mapped";
  std::string result = "works";
  try {
    device.register_read_only({static_cast<const std::byte*>(mapped), page});
  } catch (const Error& error) {
    result = error.what();
  }
  ::munmap(mapped, page);
  return result;
}

Json facts_of(int ordinal) {
  const std::shared_ptr<Device> device = make_cuda_device(ordinal);
  const DeviceInfo& info = device->info();
  const std::string bus_id = bus_id_of(ordinal);
  const std::string folder = "/sys/bus/pci/devices/" + bus_id;
  return {{"ordinal", ordinal},
          {"name", info.name},
          {"memory_bytes", info.memory_bytes},
          {"free_bytes", device->free_memory_bytes()},
          {"compute_capability", fmt::format("{}.{}", attribute(cudaDevAttrComputeCapabilityMajor, ordinal),
                                             attribute(cudaDevAttrComputeCapabilityMinor, ordinal))},
          {"multiprocessors", attribute(cudaDevAttrMultiProcessorCount, ordinal)},
          {"clock_hz", static_cast<std::uint64_t>(attribute(cudaDevAttrClockRate, ordinal)) * 1000},
          {"bus_id", bus_id},
          {"link", read_pcie_link(folder, "current")},
          {"link_at_most", read_pcie_link(folder, "max")},
          {"registers_read_only", info.registers_read_only},
          {"registration", try_registration(*device)},
          {"batched_copy", info.batched_copy},
          {"copy_note", info.copy_note}};
}

}  // namespace

void add_cuda_gpus(Json& report) {
  int version = 0;
  if (cudaDriverGetVersion(&version) == cudaSuccess) report["driver"] = version_text(version);
  if (cudaRuntimeGetVersion(&version) == cudaSuccess) report["runtime"] = version_text(version);
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    report["absent"] = report["driver"] == "" ? "no NVIDIA driver is loaded"
                       : error != cudaSuccess ? cudaGetErrorString(error)
                                              : "the driver shows none";
    cudaGetLastError();
    return;
  }
  std::string absent;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    try {
      report["devices"].push_back(facts_of(ordinal));
    } catch (const Error& failure) {  // one that is lost or in use by another process alone
      absent += fmt::format("{}GPU {}: {}", absent.empty() ? "" : "; ", ordinal, failure.what());
    }
  }
  report["absent"] = absent;
}

}  // namespace shard::bench::detail
