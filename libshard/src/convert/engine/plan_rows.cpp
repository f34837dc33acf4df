// The rows of a plan: its inputs, shard by shard.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "convert/engine/plan_reader.hpp"
#include "convert/engine/row_source.hpp"
#include "convert/engine/steps.hpp"
#include "convert/publish/shard_claims.hpp"
#include "convert/sources/input_fetcher.hpp"
#include "shard/error.hpp"

namespace shard::convert {

namespace {

// Writes to one file wait for each other in the kernel, and frames for their turn, so threads fill different
// files. A run that is killed loses what they have. Archives are read from front to back, which disks like
// best.
constexpr std::size_t kMostFilling = 8;
constexpr std::size_t kMostFillingOfArchives = 2;
constexpr auto kClaimPoll = std::chrono::milliseconds(100);  // also how soon a cancel is seen

class PlanRows final : public RowSource {
 public:
  // As convert_shards(). All references must outlive the source.
  PlanRows(const Plan& plan, const Options& options, const PlanRecord& record,
           std::vector<std::uint64_t> todo, const std::map<std::uint64_t, ShardSummary>& missing,
           const Hooks& hooks)
      : plan_(plan),
        options_(options),
        record_(record),
        missing_(missing),
        hooks_(hooks),
        todo_(std::move(todo)) {
    if (options.claim)
      claims_.emplace(
          options.out, options.out / (missing.empty() ? kPlanFile : kDatasetFile), std::move(todo_),
          [this](std::uint64_t shard) { return is_finished(shard); },
          [this](std::uint64_t shard) { count_resumed(shard); });
    if (plan.list.on_server(plan.list.inputs.front()))
      fetcher_.emplace(plan.list, plan.per_shard, [this] { return ends(); });
  }

  std::unique_ptr<RowReader> reader(image::MemoryBudget& memory) override {
    return std::make_unique<PlanReader>(plan_, options_, hooks_.cancel, memory,
                                        fetcher_ ? &*fetcher_ : nullptr);
  }

  std::size_t most_filling() const override {
    // next_shard() waits; inputs are fetched in their order; of Hooks::published.
    if (claims_ || fetcher_ || hooks_.published) return 1;
    const bool files = plan_.list.archives.empty() || plan_.list.archives.size() == plan_.list.inputs.size();
    const std::size_t most = files ? kMostFilling : kMostFillingOfArchives;
    return std::clamp<std::size_t>(options_.threads(), 1, most);
  }

  std::optional<ShardToFill> next_shard() override {
    const std::optional<std::uint64_t> shard = claims_ ? find_claimed() : find();
    if (!shard) return std::nullopt;
    ShardToFill next = to_fill(plan_, spec_, *shard);
    if (!missing_.empty()) next.expected = &missing_.at(*shard);
    return next;
  }

  void published(std::uint64_t shard) override {
    const std::lock_guard lock(mutex_);
    if (claims_) claims_->release(shard);
    changed_.notify_all();
  }

  void stop() noexcept override {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }

 private:
  bool ends() const noexcept {
    return stop_ || (hooks_.cancel != nullptr && hooks_.cancel->load(std::memory_order_relaxed));
  }

  void count_resumed(std::uint64_t shard) const {
    if (hooks_.counters != nullptr) hooks_.counters->resumed += plan_.shard_inputs(shard);
  }

  bool is_finished(std::uint64_t shard) const {
    if (missing_.empty())
      // In this order: receipts are removed after dataset.json was published.
      return finished_shard(options_.out, record_, shard).has_value() || dataset_is_there(options_.out);
    std::error_code error;
    const auto size = std::filesystem::file_size(options_.out / shard_name(shard), error);
    return !error && size == missing_.at(shard).size_bytes;
  }

  std::optional<std::uint64_t> find_claimed() {
    std::unique_lock lock(mutex_);
    while (!ends()) {
      std::uint64_t shard = 0;
      const ShardClaims::Found found = claims_->take(shard);
      if (found == ShardClaims::Found::shard) return shard;
      if (found == ShardClaims::Found::none) break;
      changed_.wait_for(lock, kClaimPoll);
    }
    return std::nullopt;
  }

  // If locks do not work, or if ranks overlap, another process may have finished a shard, or all of them.
  std::optional<std::uint64_t> find() {
    while (todo_next_ < todo_.size()) {
      if (missing_.empty() && dataset_is_there(options_.out)) break;
      const std::uint64_t shard = todo_[todo_next_++];
      if (!missing_.empty() || !finished_shard(options_.out, record_, shard)) return shard;
      count_resumed(shard);
    }
    return std::nullopt;
  }

  const Plan& plan_;
  const Options& options_;
  const PlanRecord& record_;
  const std::map<std::uint64_t, ShardSummary>& missing_;
  const Hooks& hooks_;
  const DatasetSpec spec_ = spec_of(options_, plan_);
  std::vector<std::uint64_t> todo_;
  std::size_t todo_next_ = 0;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable changed_;      // a shard was published, or the run stops
  std::optional<ShardClaims> claims_;    // guarded by mutex_
  std::optional<InputFetcher> fetcher_;  // of inputs on servers
};

}  // namespace

void convert_shards(const Plan& plan, const Options& options, const PlanRecord& record, const Hooks& hooks,
                    std::vector<std::uint64_t> todo, const std::map<std::uint64_t, ShardSummary>& missing,
                    Summary& summary) {
  PlanRows rows(plan, options, record, std::move(todo), missing, hooks);
  convert_rows(rows, options, record, hooks, summary);
}

}  // namespace shard::convert
