#include "convert/rank.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/quote.hpp"
#include "shard/error.hpp"

namespace shard::convert {

namespace {

constexpr const char* kCure = "unset what is wrong, or give `rank` and `world_size`";

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}; {}", what, kCure));
}

// A variable that is set, or nothing; an empty one counts as not set.
const char* get(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? text : nullptr;
}

bool parse(std::string_view text, std::uint32_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

std::uint32_t number(const char* name) {
  std::uint32_t value = 0;
  if (!parse(get(name), value)) refuse(fmt::format("{}={} is not a number", name, quoted(get(name))));
  return value;
}

// The value of a variable that must be there because `partner` is.
std::uint32_t number_beside(const char* name, const char* partner) {
  if (get(name) == nullptr) refuse(fmt::format("{} is set without {}", partner, name));
  return number(name);
}

RankAndSize checked(RankAndSize placement) {
  if (placement.rank >= placement.world_size)
    refuse(fmt::format("{}: the rank must be less than the world size", placement.source));
  return placement;
}

std::optional<RankAndSize> from_pair(const char* rank, const char* world) {
  if (get(rank) == nullptr && get(world) == nullptr) return std::nullopt;
  const std::uint32_t r = number_beside(rank, world);
  const std::uint32_t w = number_beside(world, rank);
  return checked({r, w, fmt::format("{}={}, {}={}", rank, r, world, w), false});
}

// From 0xfffffff0 on a step's number is not one of srun's: the batch script's, salloc's shell, ...
bool in_step_of_srun() {
  constexpr std::uint32_t kFirstSpecialStep = 0xFFFFFFF0U;
  std::uint32_t step = 0;
  return get("SLURM_STEP_ID") != nullptr && parse(get("SLURM_STEP_ID"), step) && step < kFirstSpecialStep;
}

std::optional<RankAndSize> from_slurm_step() {
  if (!in_step_of_srun()) return std::nullopt;
  const std::uint32_t rank = number_beside("SLURM_PROCID", "SLURM_STEP_ID");
  const std::uint32_t world = number_beside("SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID");
  // sbatch hands the variables of the step that it is called in on to the new job, where nothing resets them.
  if (get("SLURM_NTASKS") != nullptr && number("SLURM_NTASKS") != world) {
    if (world == 1) return std::nullopt;
    refuse(fmt::format(
        "SLURM_STEP_NUM_TASKS={} and SLURM_NTASKS={} contradict each other: the one is of another job", world,
        number("SLURM_NTASKS")));
  }
  return checked(
      {rank, world, fmt::format("Slurm step: SLURM_PROCID={}, SLURM_STEP_NUM_TASKS={}", rank, world), false});
}

// Processes that one launcher started together. Rank and size may also be set by hand; what only the launcher
// itself sets tells whether it is there to end them together.
std::optional<RankAndSize> from_launcher() {
  if (auto placement = from_pair("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")) {
    placement->all_or_none = get("PMIX_NAMESPACE") != nullptr || get("OMPI_MCA_ess_base_jobid") != nullptr;
    return placement;
  }
  const std::optional<RankAndSize> step = from_slurm_step();
  if (auto placement = from_pair("PMI_RANK", "PMI_SIZE")) {
    // srun --mpi=pmi2 sets these as well.
    if (step && step->rank == placement->rank && step->world_size == placement->world_size) return step;
    placement->all_or_none = get("PMI_FD") != nullptr || get("PMI_PORT") != nullptr;
    return placement;
  }
  if (get("TORCHELASTIC_RUN_ID") != nullptr) {
    if (auto placement = from_pair("RANK", "WORLD_SIZE")) {
      placement->all_or_none = true;
      return placement;
    }
  }
  return step;
}

std::optional<RankAndSize> from_slurm_array() {
  const char* id = "SLURM_ARRAY_TASK_ID";
  const char* count = "SLURM_ARRAY_TASK_COUNT";
  if (get(id) == nullptr && get(count) == nullptr) return std::nullopt;
  const std::uint32_t index = number_beside(id, count);
  const std::uint32_t world = number_beside(count, id);
  const std::uint32_t first = number_beside("SLURM_ARRAY_TASK_MIN", id);
  const std::uint32_t last = number_beside("SLURM_ARRAY_TASK_MAX", id);
  const std::uint32_t step = get("SLURM_ARRAY_TASK_STEP") != nullptr ? number("SLURM_ARRAY_TASK_STEP") : 1;
  const std::string source =
      fmt::format("job array: {}={} of {} to {} step {}, {}={}", id, index, first, last, step, count, world);
  // Of an array like 1,5,9 Slurm says neither the members nor a step, so the place of one is not known.
  const bool even = step > 0 && first <= last && world > 0 && (last - first) / step + 1 == world &&
                    index >= first && index <= last && (index - first) % step == 0;
  if (!even) refuse(source + ": the members are not evenly spaced, so their ranks are not known");
  return checked({(index - first) / step, world, source, false});
}

std::optional<RankAndSize> from_array() {
  if (auto placement = from_slurm_array()) return placement;
  return from_pair("AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE");
}

// Each member of the array runs the same number of processes.
RankAndSize combine(const RankAndSize& member, const RankAndSize& process) {
  if (member.world_size > UINT32_MAX / process.world_size)
    refuse(fmt::format("{} times {} processes are too many", member.world_size, process.world_size));
  return {member.rank * process.world_size + process.rank, member.world_size * process.world_size,
          member.source + "; " + process.source, process.all_or_none};
}

// RANK and WORLD_SIZE beside a launcher that has spoken: one of them alone is fine, a contradiction is not.
void require_agreement(const RankAndSize& placement) {
  if (get("TORCHELASTIC_RUN_ID") != nullptr) return;
  const auto compare = [&](const char* name, std::uint32_t value) {
    if (get(name) != nullptr && number(name) != value)
      refuse(fmt::format("{}={} contradicts rank {} of {} ({})", name, number(name), placement.rank,
                         placement.world_size, placement.source));
  };
  compare("RANK", placement.rank);
  compare("WORLD_SIZE", placement.world_size);
}

// RANK and WORLD_SIZE set by hand in an indexed job of Kubernetes.
void require_same_index(const RankAndSize& placement) {
  const char* name = "JOB_COMPLETION_INDEX";
  if (get(name) != nullptr && number(name) != placement.rank)
    refuse(fmt::format("{}={} contradicts {}", name, number(name), placement.source));
}

std::optional<RankAndSize> from_rank_alone(std::optional<std::uint32_t> world) {
  for (const char* name : {"PMIX_RANK", "JOB_COMPLETION_INDEX"}) {
    if (get(name) == nullptr) continue;
    const std::uint32_t rank = number(name);
    if (!world)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format(
              "{}={} says which process this is, and nothing says of how many: give `world_size` N, or "
              "`rank` 0 `world_size` 1 for all the work in this process",
              name, rank));
    return checked({rank, *world, fmt::format("{}={}, `world_size` {}", name, rank, *world), false});
  }
  return std::nullopt;
}

}  // namespace

std::optional<RankAndSize> placement_from_environment(std::optional<std::uint32_t> world) {
  std::optional<RankAndSize> placement = from_launcher();
  if (const auto member = from_array()) placement = placement ? combine(*member, *placement) : *member;
  if (placement)
    require_agreement(*placement);
  else if ((placement = from_pair("RANK", "WORLD_SIZE")))
    require_same_index(*placement);
  if (!placement) placement = from_rank_alone(world);
  if (placement && world && placement->world_size != *world)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format(
            "`world_size` {} contradicts the world size {} ({}); give `rank` too, or leave `world_size` out",
            *world, placement->world_size, placement->source));
  return placement;
}

}  // namespace shard::convert
