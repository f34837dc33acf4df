// What the kernel says of a PCIe device's link.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace shard::bench {

struct PcieLink {
  int generation = 0;  // 1 to 6; 0: not known
  int width = 0;       // lanes; 0: not known
  // Of one direction, line code taken off, packet headers not; 0: not known.
  double bytes_per_second() const noexcept;
};
struct PcieLinks {
  PcieLink now;   // an idle link may have gone down to a lower generation
  PcieLink most;  // what device and slot can do
};

// `folder`: /sys/bus/pci/devices/0000:17:00.0. What is missing or not understood is 0.
PcieLinks read_pcie_links(const std::filesystem::path& folder);
std::string to_string(const PcieLink& link);  // "gen 5 x16 (63.0 GB/s)", "not known"

}  // namespace shard::bench
