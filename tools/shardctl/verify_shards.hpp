// The checking of shards: every rule and every digest, many samples at a time, going on after each failure.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cli/progress.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"

namespace shard::ctl {

struct Failure {
  std::string file;                     // name in the folder, escaped
  std::optional<std::uint64_t> sample;  // inside the shard
  std::string key;                      // of the sample, when it could be read
  std::string message;
  ErrorCode code = ErrorCode::corrupt;
};

// What was found; thread safe while the check runs.
class Findings {
 public:
  void add(Failure failure);
  std::vector<Failure> sorted() const;  // by file, then sample
  std::uint64_t count() const;

  std::atomic<std::uint64_t> shards{0};  // checked to their end
  std::atomic<std::uint64_t> samples{0};
  std::atomic<std::uint64_t> bytes{0};  // of stored frames and heads

 private:
  mutable std::mutex mutex_;
  std::vector<Failure> failures_;
};

struct ShardTask {
  std::filesystem::path path;
  const DatasetInfo* dataset = nullptr;    // what it belongs to; null: unknown
  const ShardSummary* expected = nullptr;  // what dataset.json says of it; null: nothing
};

// Each shard is opened once; memory: a few samples a thread. What is wrong goes to `findings`; throws nothing
// of it.
void verify_shards(const std::vector<ShardTask>& tasks, unsigned threads, cli::Progress& progress,
                   Findings& findings);

}  // namespace shard::ctl
