#include "convert/launcher.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "shard/error.hpp"

namespace shard::convert {

namespace {

struct Pair {
  const char* rank;
  const char* world;
};
constexpr std::array<Pair, 4> kPairs{{{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                      {"PMI_RANK", "PMI_SIZE"},
                                      {"SLURM_PROCID", "SLURM_NTASKS"},
                                      {"RANK", "WORLD_SIZE"}}};

std::uint32_t parse(const char* name, std::string_view text) {
  std::uint32_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}='{}' is not a number; unset it or give --rank and --world", name, text));
  return value;
}

}  // namespace

std::optional<Placement> placement_from_environment() {
  for (const Pair& pair : kPairs) {
    const char* rank = std::getenv(pair.rank);
    const char* world = std::getenv(pair.world);
    if (rank == nullptr && world == nullptr) continue;
    if (rank == nullptr || world == nullptr)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("{} is set without {}; set both, or give --rank and --world",
                      rank != nullptr ? pair.rank : pair.world, rank != nullptr ? pair.world : pair.rank));
    Placement placement{parse(pair.rank, rank), parse(pair.world, world),
                        fmt::format("{}, {}", pair.rank, pair.world)};
    if (placement.rank >= placement.world)
      throw Error(ErrorCode::invalid_argument, fmt::format("{}={} must be less than {}={}", pair.rank,
                                                           placement.rank, pair.world, placement.world));
    return placement;
  }
  return std::nullopt;
}

}  // namespace shard::convert
