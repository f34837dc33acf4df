// The threads of a conversion: each reads, decodes and stores one row after the other.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/system/parallel.hpp"
#include "base/system/stopwatch.hpp"
#include "base/system/system_memory.hpp"
#include "base/text/quote.hpp"
#include "convert/engine/scheduler.hpp"
#include "convert/plan/choose.hpp"
#include "convert/sources/input_file.hpp"
#include "convert/sources/remote_input.hpp"
#include "shard/convert/decoding.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"

namespace shard::convert {

bool lacks_memory(const Error& error) {
  const std::string_view what = error.what();
  const auto says = [&](std::string_view words) { return what.find(words) != std::string_view::npos; };
  return error.code() == ErrorCode::resource &&
         (says("no memory") || says("ut of memory") || says("allocate"));
}

bool ends_run(const Error& error, bool was_read) {
  if (error.code() == ErrorCode::cancelled || dynamic_cast<const InputChanged*>(&error) != nullptr ||
      dynamic_cast<const ServerFailure*>(&error) != nullptr)
    return true;
  if (was_read) return false;
  return error.code() == ErrorCode::invalid_argument ||
         (error.code() == ErrorCode::resource && dynamic_cast<const UnreadableInput*>(&error) == nullptr);
}

namespace {

// What one worker thread does.
class Worker {
 public:
  Worker(RowSource& source, const Options& options, Scheduler& scheduler, const Hooks& hooks,
         image::MemoryBudget& memory)
      : options_(options), scheduler_(scheduler), counters_(hooks.counters), reader_(source.reader(memory)) {}

  void run() noexcept {
    try {
      while (auto item = scheduler_.next(*reader_)) {
        convert(*item);
        reader_->release();
        scheduler_.done(*item);
      }
    } catch (...) {
      scheduler_.fail(std::current_exception());
    }
  }

  void add_to(Summary& summary) const {
    summary.stages.read += stages_.read;
    summary.stages.preprocess += stages_.preprocess;
    summary.stages.store += stages_.store;
    summary.converted += converted_;
    summary.warnings.add(warnings_);
    summary.jpeg.add(jpeg_);
    summary.bytes_read += bytes_read_;
  }

 private:
  void convert(const Item& item) {
    Stopwatch watch;
    double read_seconds = 0;
    bool was_read = false;
    try {
      bytes_read_ += reader_->read(*item.input);
      read_seconds = watch.restart();
      was_read = true;
      reader_->decode(sample_);
    } catch (const Error& error) {
      if (ends_run(error, was_read)) throw;
      return reject(item, reject_reason(error));
    }
    const double preprocess_seconds = watch.restart();
    item.job->writer.put(item.row, item.input->key, sample_.columns, sample_.image, sample_.fields);
    ++item.job->stored;
    if (!sample_.warnings.empty() || sample_.jpeg) {
      warnings_.add(sample_.warnings);
      std::lock_guard lock(item.job->mutex);
      item.job->warnings.add(sample_.warnings);
      if (sample_.jpeg) item.job->jpeg.add(*sample_.jpeg);
    }
    if (sample_.jpeg) jpeg_.add(*sample_.jpeg);
    ++converted_;
    stages_.read += read_seconds;
    stages_.preprocess += preprocess_seconds;
    stages_.store += watch.seconds();
    count();
  }

  void count() {
    if (counters_ == nullptr) return;
    counters_->stored += 1;
    counters_->bytes_stored += sample_.image_bytes;
    for (const SampleValues& field : sample_.fields) counters_->bytes_stored += field.bytes.size();
    counters_->bytes_read += bytes_read_ - counted_bytes_;
    counted_bytes_ = bytes_read_;
  }

  void reject(const Item& item, const std::string& reason) {
    const std::string& key = item.input->key;
    if (options_.on_error == OnError::fail)
      throw Error(ErrorCode::corrupt, fmt::format("{}: {} (`on_error` fail)", quoted_key(key), reason));
    item.job->writer.skip(item.row);
    {
      std::lock_guard lock(item.job->mutex);
      item.job->rejects.emplace_back(item.row, Reject{key, escape_key(reason)});
    }
    if (counters_ != nullptr) counters_->rejected += 1;
  }

  const Options& options_;
  Scheduler& scheduler_;
  Counters* counters_;
  std::unique_ptr<RowReader> reader_;
  RowSample sample_;
  StageSeconds stages_;
  std::uint64_t converted_ = 0;
  std::uint64_t bytes_read_ = 0;
  std::uint64_t counted_bytes_ = 0;
  image::WarningCounts warnings_;
  JpegCounts jpeg_;
};

}  // namespace

void convert_rows(RowSource& source, const Options& options, const PlanRecord& record, const Hooks& hooks,
                  Summary& summary) {
  // The processes on this machine share its memory.
  const std::uint64_t processes = options.claim ? local_rank_count()
                                  : options.world_size > 1
                                      ? std::min<std::uint64_t>(options.world_size, local_rank_count())
                                      : 1;
  image::MemoryBudget memory(options.decode_memory_bytes != 0
                                 ? options.decode_memory_bytes
                                 : image::MemoryBudget::default_bytes(processes));
  Scheduler scheduler(source, options, record, hooks);
  std::vector<std::unique_ptr<Worker>> workers;
  for (unsigned i = 0; i < options.threads(); ++i)
    workers.push_back(std::make_unique<Worker>(source, options, scheduler, hooks, memory));
  run_threads(options.threads(), [&](unsigned thread) { workers[thread]->run(); });
  scheduler.finish();
  for (const auto& worker : workers) worker->add_to(summary);
  summary.converted_shards = scheduler.published();
  summary.stages.publish = scheduler.publish_seconds();
  summary.stages.wait = scheduler.wait_seconds();
}

}  // namespace shard::convert
