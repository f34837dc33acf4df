// CachedRows: a source of rows that are stored in logs. What a log does not have is read and decoded as in
// any conversion, so the shards have the same bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "convert/engine/row_source.hpp"
#include "convert/engine/sample_logs.hpp"
#include "convert/plan/plan.hpp"
#include "shard/error.hpp"

namespace shard::convert {

// A shard cannot be finished now, because an image of it cannot be read.
class ShardPostponed : public Error {
 public:
  ShardPostponed(std::uint64_t shard, const std::string& what)
      : Error(ErrorCode::cancelled, what), shard_(shard) {}  // which ends a run
  std::uint64_t shard() const noexcept { return shard_; }

 private:
  std::uint64_t shard_;
};

class CachedRows final : public RowSource {
 public:
  // All must outlive the source. `next`: the shard to fill next; nothing: there is none at the moment.
  // `published` is called with each shard. `decoded` counts the inputs that no log has. A run of these rows
  // ends with ShardPostponed where such an input cannot be read.
  CachedRows(const Plan& plan, const Options& options, SampleLogs& logs,
             std::function<std::optional<std::uint64_t>()> next,
             std::function<void(std::uint64_t shard)> published, std::atomic<std::uint64_t>& decoded,
             const std::atomic<bool>* cancel);

  std::unique_ptr<RowReader> reader(image::MemoryBudget& memory) override;
  std::size_t most_filling() const override { return 1; }
  std::optional<ShardToFill> next_shard() override;
  void published(std::uint64_t shard) override { published_(shard); }
  void stop() noexcept override { stop_ = true; }

 private:
  const Plan& plan_;
  const Options& options_;
  const DatasetSpec spec_;
  SampleLogs& logs_;
  const std::function<std::optional<std::uint64_t>()> next_;
  const std::function<void(std::uint64_t)> published_;
  std::atomic<std::uint64_t>& decoded_;
  const std::atomic<bool>* cancel_;
  std::atomic<bool> stop_{false};
};

}  // namespace shard::convert
