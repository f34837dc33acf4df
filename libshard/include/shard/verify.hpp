// Verification of shards: every rule and every digest, labels against the classes of the data set, and
// dataset.json against the heads. It goes on after each failure and reports all of them.
// `shardctl verify` and Python's Dataset.verify() are this.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "shard/dataset.hpp"
#include "shard/error.hpp"

namespace shard {

struct VerifyFailure {
  std::string file;                     // name in the folder, escaped
  std::optional<std::uint64_t> sample;  // inside the shard
  std::string key;                      // of the sample, when it could be read
  std::string message;
  ErrorCode code = ErrorCode::corrupt;
};

// What was found; thread safe while the check runs.
class VerifyFindings {
 public:
  void add(VerifyFailure failure);
  std::vector<VerifyFailure> sorted() const;  // by file, then sample
  std::uint64_t count() const;

  std::atomic<std::uint64_t> shards{0};  // checked to their end
  std::atomic<std::uint64_t> samples{0};
  std::atomic<std::uint64_t> bytes{0};  // of stored frames and heads

 private:
  mutable std::mutex mutex_;
  std::vector<VerifyFailure> failures_;
};

struct VerifyTask {
  std::filesystem::path path;
  const DatasetInfo* dataset = nullptr;    // what it belongs to; null: unknown
  const ShardSummary* expected = nullptr;  // what dataset.json says of it; null: nothing
};

// All shards of a data set in `folder`; `info` must outlive the tasks.
std::vector<VerifyTask> verify_tasks(const std::filesystem::path& folder, const DatasetInfo& info);
// Whole shards, also where only some of their samples are selected. `data` must outlive the tasks. Error:
// unsupported (images that are not converted: nothing is stored of them).
std::vector<VerifyTask> verify_tasks(const Dataset& data);

// Each shard is opened once; memory: a few samples per thread. What is wrong goes to `findings` and is not
// thrown. `progress` is called now and then, from any of the threads. A request to stop ends it soon,
// with what was found until then. If the system gives fewer threads, it takes longer.
// Errors: resource (no memory).
void verify_shards(const std::vector<VerifyTask>& tasks, unsigned threads, VerifyFindings& findings,
                   const std::function<void()>& progress = {}, const std::stop_token& stop = {});

}  // namespace shard
