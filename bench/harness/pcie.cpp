#include "harness/pcie.hpp"

#include <fstream>

#include <fmt/core.h>

namespace shard::bench {
namespace {

// "32.0 GT/s PCIe"; "Unknown" and the like are 0.
int generation_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  double rate = 0;
  if (!(in >> rate)) return 0;
  constexpr double kRates[] = {2.5, 5, 8, 16, 32, 64};
  for (int g = 0; g < 6; ++g)
    if (rate > 0.95 * kRates[g] && rate < 1.05 * kRates[g]) return g + 1;
  return 0;
}

// The kernel says 255 where it does not know.
int width_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  int width = 0;
  return in >> width && width >= 1 && width <= 32 ? width : 0;
}

}  // namespace

double PcieLink::bytes_per_second() const noexcept {
  // GT/s and line code by generation: 8b/10b, 128b/130b, and flits of 256 bytes that carry 242.
  constexpr double kLane[] = {0,
                              2.5e9 * 8 / 10 / 8,
                              5e9 * 8 / 10 / 8,
                              8e9 * 128 / 130 / 8,
                              16e9 * 128 / 130 / 8,
                              32e9 * 128 / 130 / 8,
                              64e9 * 242 / 256 / 8};
  return generation >= 1 && generation <= 6 ? kLane[generation] * width : 0;
}

PcieLinks read_pcie_links(const std::filesystem::path& folder) {
  return {{generation_of(folder / "current_link_speed"), width_of(folder / "current_link_width")},
          {generation_of(folder / "max_link_speed"), width_of(folder / "max_link_width")}};
}

std::string to_string(const PcieLink& link) {
  if (link.bytes_per_second() == 0) return "not known";
  return fmt::format("gen {} x{} ({:.1f} GB/s)", link.generation, link.width, link.bytes_per_second() / 1e9);
}

}  // namespace shard::bench
