#include "shard/convert/rank.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/text/number.hpp"
#include "base/text/quote.hpp"
#include "shard/error.hpp"

namespace shard::convert {

namespace {

constexpr const char* kCure = "unset the wrong variables, or give `rank` and `world_size`";

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}; {}", what, kCure));
}

// The value of a variable, or null. An empty one counts as not set.
const char* get(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? text : nullptr;
}

std::uint32_t number(const char* name) {
  const auto value = number_of<std::uint32_t>(get(name));
  if (!value) refuse(fmt::format("{}={} is not a number", name, quoted(get(name))));
  return *value;
}

// The value of a variable that must be there because `partner` is.
std::uint32_t number_beside(const char* name, const char* partner) {
  if (get(name) == nullptr) refuse(fmt::format("{} is set without {}", partner, name));
  return number(name);
}

RankAndSize checked(RankAndSize found) {
  if (found.rank >= found.world_size)
    refuse(fmt::format("{}: the rank must be less than the world size", found.source));
  return found;
}

std::optional<RankAndSize> from_pair(const char* rank, const char* world) {
  if (get(rank) == nullptr && get(world) == nullptr) return std::nullopt;
  const std::uint32_t r = number_beside(rank, world);
  const std::uint32_t w = number_beside(world, rank);
  return checked({r, w, fmt::format("{}={}, {}={}", rank, r, world, w), false});
}

// Step numbers from 0xfffffff0 on are not those of srun, but of the batch script, the shell of salloc, ...
bool in_step_of_srun() {
  constexpr std::uint32_t kFirstSpecialStep = 0xFFFFFFF0U;
  const char* const step = get("SLURM_STEP_ID");
  return step != nullptr && number_of<std::uint32_t>(step).value_or(kFirstSpecialStep) < kFirstSpecialStep;
}

std::optional<RankAndSize> from_slurm_step() {
  if (!in_step_of_srun()) return std::nullopt;
  const std::uint32_t rank = number_beside("SLURM_PROCID", "SLURM_STEP_ID");
  const std::uint32_t world = number_beside("SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID");
  // If sbatch is called inside a step, the new job inherits the step's variables, and nothing resets them.
  if (get("SLURM_NTASKS") != nullptr && number("SLURM_NTASKS") != world) {
    if (world == 1) return std::nullopt;
    refuse(fmt::format(
        "SLURM_STEP_NUM_TASKS={} and SLURM_NTASKS={} contradict each other: one of them is of another job",
        world, number("SLURM_NTASKS")));
  }
  return checked(
      {rank, world, fmt::format("Slurm step: SLURM_PROCID={}, SLURM_STEP_NUM_TASKS={}", rank, world), false});
}

// Processes that one launcher started together. The variables may also be set by hand. Whether the launcher
// itself is there, and ends all processes together, is known by variables that nobody else sets.
std::optional<RankAndSize> from_launcher() {
  if (auto found = from_pair("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")) {
    found->all_or_none = get("PMIX_NAMESPACE") != nullptr || get("OMPI_MCA_ess_base_jobid") != nullptr;
    return found;
  }
  const std::optional<RankAndSize> step = from_slurm_step();
  if (auto found = from_pair("PMI_RANK", "PMI_SIZE")) {
    // srun --mpi=pmi2 sets these as well.
    if (step && step->rank == found->rank && step->world_size == found->world_size) return step;
    found->all_or_none = get("PMI_FD") != nullptr || get("PMI_PORT") != nullptr;
    return found;
  }
  if (get("TORCHELASTIC_RUN_ID") != nullptr) {
    if (auto found = from_pair("RANK", "WORLD_SIZE")) {
      found->all_or_none = true;
      return found;
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
  // For an array like 1,5,9 Slurm gives neither the members nor a step, so the position of a member is
  // unknown.
  const bool even = step > 0 && first <= last && world > 0 && (last - first) / step + 1 == world &&
                    index >= first && index <= last && (index - first) % step == 0;
  if (!even) refuse(source + ": the members are not evenly spaced, so their ranks are not known");
  return checked({(index - first) / step, world, source, false});
}

std::optional<RankAndSize> from_array() {
  if (auto found = from_slurm_array()) return found;
  return from_pair("AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE");
}

// Each member of the array runs the same number of processes.
RankAndSize combine(const RankAndSize& member, const RankAndSize& process) {
  if (member.world_size > UINT32_MAX / process.world_size)
    refuse(fmt::format("an array of {} members with {} processes each has more than {} ranks",
                       member.world_size, process.world_size, UINT32_MAX));
  return {member.rank * process.world_size + process.rank, member.world_size * process.world_size,
          member.source + "; " + process.source, process.all_or_none};
}

// If a launcher gave rank and size, RANK and WORLD_SIZE may be set too, even only one of them, but must
// agree.
void require_agreement(const RankAndSize& found) {
  if (get("TORCHELASTIC_RUN_ID") != nullptr) return;
  const auto compare = [&](const char* name, std::uint32_t value) {
    if (get(name) != nullptr && number(name) != value)
      refuse(fmt::format("{}={} contradicts rank {} of {} ({})", name, number(name), found.rank,
                         found.world_size, found.source));
  };
  compare("RANK", found.rank);
  compare("WORLD_SIZE", found.world_size);
}

// If RANK and WORLD_SIZE are set by hand in an indexed job of Kubernetes, the rank must be the job's index.
void require_same_index(const RankAndSize& found) {
  const char* name = "JOB_COMPLETION_INDEX";
  if (get(name) != nullptr && number(name) != found.rank)
    refuse(fmt::format("{}={} contradicts {}", name, number(name), found.source));
}

std::optional<RankAndSize> from_rank_alone(std::optional<std::uint32_t> world) {
  for (const char* name : {"PMIX_RANK", "JOB_COMPLETION_INDEX"}) {
    if (get(name) == nullptr) continue;
    const std::uint32_t rank = number(name);
    if (!world)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("{}={} is the rank of this process, but the number of processes is not known: "
                      "give `world_size` N, or `rank` 0 `world_size` 1 to do all the work in this process",
                      name, rank));
    return checked({rank, *world, fmt::format("{}={}, `world_size` {}", name, rank, *world), false});
  }
  return std::nullopt;
}

}  // namespace

std::optional<RankAndSize> rank_from_environment(std::optional<std::uint32_t> world) {
  std::optional<RankAndSize> found = from_launcher();
  if (const auto member = from_array()) found = found ? combine(*member, *found) : *member;
  if (found)
    require_agreement(*found);
  else if ((found = from_pair("RANK", "WORLD_SIZE")))
    require_same_index(*found);
  if (!found) found = from_rank_alone(world);
  if (found && world && found->world_size != *world)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format(
            "`world_size` {} contradicts the world size {} ({}); give `rank` too, or leave `world_size` out",
            *world, found->world_size, found->source));
  return found;
}

}  // namespace shard::convert
