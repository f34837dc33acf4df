// The GPUs that this process may use, and what the loader can use there, as the JSON of `shardbench device`
// has them.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

namespace shard::bench {

// devices; absent: why there are none, or which are left out, else empty; driver and runtime: versions of
// CUDA, empty without CUDA; gpudirect_storage: whether libcufile can be loaded, and the version of the kernel
// module that it needs. What the platform lacks is never a reason to throw.
nlohmann::ordered_json gpu_report();

// generation (1 to 6), width (lanes) and bytes_per_second of a PCIe link (one direction, without the line
// code, but with packet headers). What is missing or not understood is 0. `folder`:
// /sys/bus/pci/devices/0000:17:00.0. `which`: "current" (an idle link may use a lower generation) or "max"
// (what device and slot can do).
nlohmann::ordered_json read_pcie_link(const std::filesystem::path& folder, const std::string& which);

namespace detail {
void add_cuda_gpus(nlohmann::ordered_json& report);  // built with CUDA only
}

}  // namespace shard::bench
