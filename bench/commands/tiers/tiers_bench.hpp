// The rates of a storage tier: of the loader's transports and of decoding on the fly, cold and warm, each
// with its limit; and the same for emulated tiers.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/system/parallel.hpp"
#include "feeds/tier_data.hpp"
#include "harness/throttle.hpp"
#include "shard/loader/loader.hpp"

namespace shard::bench {

enum class TierCache : std::uint8_t { cold, warm, around };  // around: past the page cache (O_DIRECT)
std::string_view to_string(TierCache cache) noexcept;

struct TierSample {
  double samples_per_second = 0;
  double limit_samples_per_second = 0;  // 0: none is known
  double cores = 0;
};

struct TierRow {
  std::string tier, dataset, candidate;
  TierCache cache = TierCache::warm;
  bool decodes = false;
  bool emulated = false;
  double bytes_per_sample = 0;  // in storage
  std::string problem{};        // why it was left out; then the other members are not valid
  std::string limit_is{};
  std::vector<TierSample> samples{};
};
// Medians; 0 where there are no samples.
double rate_of(const TierRow& row);
double limit_of(const TierRow& row);
// The row that decodes on the same tier with the same cache state. Null: none was measured.
const TierRow* baseline_of(const TierRow& row, const std::vector<TierRow>& rows);
double speed_up(const TierRow& row, const std::vector<TierRow>& rows);  // over its baseline; 0: not known
nlohmann::ordered_json tiers_json(const std::vector<TierRow>& rows);
// Which tiers keep a GPU of `need` samples per second fed, with what; `need` 0: nothing.
std::string need_text(const nlohmann::ordered_json& rows, double need);

// A row to measure. `verify` throws if the candidate does not deliver the reference; then it is not measured.
struct TierTask {
  TierRow row;
  std::function<void()> verify;
  std::function<TierSample(std::string& limit_is)> measure;
};

struct TierOptions {
  unsigned threads = 0;  // that decode; 0: one per core
  std::uint64_t batch_size = 256;
  OrderMode order = OrderMode::windowed;
  double seconds = 2;  // of a warm sample
  unsigned repeat = 5;
  unsigned jobs() const { return thread_count(threads); }
};

// Every row of a tier. `data` must outlive the tasks.
std::vector<TierTask> tier_tasks(const std::string& tier, const TierData& data,
                                 const std::vector<std::string>& labels,
                                 const std::shared_ptr<Device>& device, const TierOptions& options,
                                 const std::atomic<bool>& cancel);
// Every row of an emulated tier, whose real reads go to `data`: samples in sequence, and images one by one.
std::vector<TierTask> emulated_tasks(const EmulatedTier& tier, const TierData& data,
                                     const std::vector<std::string>& labels,
                                     const std::shared_ptr<Device>& device, const TierOptions& options,
                                     const std::atomic<bool>& cancel);

// A server with copies of the data sets `folders`.
struct ServerTier {
  std::string name;
  std::vector<std::filesystem::path> addresses;
  std::vector<std::filesystem::path> folders;
  std::filesystem::path cache;  // in which new cache folders are made; empty: $TMPDIR or /tmp
};
// Where the copies are: `place` itself if there is one data set, else the folders' names below it.
std::vector<std::filesystem::path> addresses_of(const std::filesystem::path& place,
                                                const std::vector<std::filesystem::path>& folders);
// Two rows for each data set: an epoch into an empty cache (cold), and epochs from the cache (warm).
// Errors: invalid_argument (no copy), and those of requests.
std::vector<TierTask> server_tasks(const ServerTier& tier, const std::vector<std::string>& labels,
                                   const std::shared_ptr<Device>& device, const TierOptions& options,
                                   const std::atomic<bool>& cancel);

// Verifies all tasks, then measures them alternately. What a task throws becomes its row's problem; cancelled
// ends all. `done` is called after the checks and after each repeat.
void run_tasks(std::vector<TierTask>& tasks, unsigned repeat, const std::atomic<bool>& cancel,
               const std::function<void(unsigned repeats)>& done);

// The storage bandwidth above which samples of `stored_bytes` are faster than images of `image_bytes` that
// are decoded at `decode_rate`. 0: at any bandwidth.
double break_even(double decode_rate, double stored_bytes, double image_bytes) noexcept;

}  // namespace shard::bench
