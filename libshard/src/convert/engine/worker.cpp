// The threads of a conversion: each reads, decodes and stores one input after the other.
#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/digest/checksum.hpp"
#include "base/system/parallel.hpp"
#include "base/system/stopwatch.hpp"
#include "base/system/system_memory.hpp"
#include "base/text/quote.hpp"
#include "convert/engine/scheduler.hpp"
#include "convert/engine/steps.hpp"
#include "convert/plan/choose.hpp"
#include "convert/plan/decoding.hpp"
#include "convert/plan/further_reader.hpp"
#include "convert/sources/input_fetcher.hpp"
#include "convert/sources/input_file.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"
#include "shard/remote.hpp"

#include <fmt/format.h>

namespace shard::convert {

namespace {

// What one worker thread does.
class Worker {
 public:
  Worker(const Plan& plan, const Options& options, Scheduler& scheduler, const Hooks& hooks,
         image::MemoryBudget& memory, InputFetcher* fetcher)
      : plan_(plan),
        options_(options),
        scheduler_(scheduler),
        hooks_(hooks),
        reader_(plan.list),
        fetcher_(fetcher),
        further_(plan.further),
        preprocessor_(options.preprocess),
        decode_(decode_options(options, hooks.cancel)),
        sample_(options.preprocess.sample_spec().size_bytes()) {
    decode_.memory = &memory;
  }

  void run() noexcept {
    try {
      while (auto item = scheduler_.next()) {
        convert(*item);
        scheduler_.done(*item);
      }
    } catch (...) {
      scheduler_.fail(std::current_exception());
    }
  }

  StageSeconds stages;
  std::uint64_t converted = 0;
  std::uint64_t bytes_read = 0;
  image::WarningCounts warnings;

 private:
  void convert(const Item& item) {
    const Input& input = plan_.list.inputs[item.index];
    const std::uint64_t row = item.index - item.job->first;
    Stopwatch watch;
    double read_seconds = 0;
    bool was_read = false;
    image::WarningSet found;
    std::span<const std::span<const std::byte>> fields;
    try {
      const std::span<const std::byte> file = bytes_of(item.index);
      plan_.require_size(item.index, file.size());
      item.job->digests[row] = further_.read(item.index, xxh3(file));
      bytes_read += file.size() + further_.bytes_read();
      read_seconds = watch.restart();
      was_read = true;
      check_size(item.index, file);
      if (options_.pages && input.page == Input::kNoPage) require_counted(file);
      decode_.page = input.page_number();
      found = preprocessor_.run_file(decoder_, file, decode_, sample_);
      if (!plan_.further.empty()) fields = further_.samples(decoder_, upright_size(file, input), decode_);
    } catch (const Error& error) {
      // Before the file was read, invalid_argument says that inputs changed.
      const bool ours = error.code() == ErrorCode::cancelled ||
                        (error.code() == ErrorCode::invalid_argument && !was_read) ||
                        dynamic_cast<const InputChanged*>(&error) != nullptr ||
                        dynamic_cast<const ServerFailure*>(&error) != nullptr ||
                        (error.code() == ErrorCode::resource && !was_read &&
                         dynamic_cast<const UnreadableInput*>(&error) == nullptr);
      if (ours) throw;
      reject(item, row, input, reject_reason(error));
      return;
    }
    const double preprocess_seconds = watch.restart();
    rows_.assign(1, plan_.label_row(item.index));
    for (const ColumnTable& column : plan_.columns) rows_.push_back(column.rows(item.index));
    item.job->writer.put(row, input.key(), rows_, sample_, fields);
    ++item.job->stored;
    if (!found.empty()) {
      warnings.add(found);
      std::lock_guard lock(item.job->mutex);
      item.job->warnings.add(found);
    }
    ++converted;
    stages.read += read_seconds;
    stages.preprocess += preprocess_seconds;
    stages.store += watch.seconds();
    if (hooks_.counters != nullptr) {
      hooks_.counters->stored += 1;
      hooks_.counters->bytes_stored += plan_.sample_bytes();
      hooks_.counters->bytes_read += bytes_read - counted_bytes_;
      counted_bytes_ = bytes_read;
    }
  }

  // Valid until the next call.
  std::span<const std::byte> bytes_of(std::uint64_t index) {
    if (fetcher_ == nullptr) return reader_.read(plan_.list.inputs[index]);
    fetched_ = {};
    fetched_ = fetcher_->get(index);
    return fetched_.bytes;
  }

  image::Size upright_size(std::span<const std::byte> file, const Input& input) const {
    const image::WideInfo info = image::read_wide_info(file, options_.max_pixels, input.page_number());
    return {info.width, info.height};
  }

  // Annotations of an image of another size would be in the wrong places.
  void check_size(std::uint64_t input, std::span<const std::byte> file) const {
    if (plan_.stated_sizes.empty()) return;
    const image::Size stated = plan_.stated_sizes[input];
    if (stated == image::Size{}) return;
    const image::Size is = upright_size(file, plan_.list.inputs[input]);
    if (is != stated)
      throw Error(ErrorCode::corrupt, fmt::format("its annotations are for {}x{} pixels, it has {}x{}",
                                                  stated.width, stated.height, is.width, is.height));
  }

  void reject(const Item& item, std::uint64_t row, const Input& input, const std::string& reason) {
    if (options_.on_error == OnError::fail)
      throw Error(ErrorCode::corrupt,
                  fmt::format("{}: {} (`on_error` fail)", quoted_key(input.key()), reason));
    item.job->writer.skip(row);
    {
      std::lock_guard lock(item.job->mutex);
      item.job->rejects.emplace_back(item.index, Reject{input.key(), escape_key(reason)});
    }
    if (hooks_.counters != nullptr) hooks_.counters->rejected += 1;
  }

  const Plan& plan_;
  const Options& options_;
  Scheduler& scheduler_;
  const Hooks& hooks_;
  InputReader reader_;
  InputFetcher* fetcher_;  // null: reader_
  InputFetcher::Fetched fetched_;
  FurtherReader further_;
  image::Decoder decoder_;
  image::Preprocessor preprocessor_;
  image::DecodeOptions decode_;
  std::vector<std::byte> sample_;
  std::vector<std::span<const std::byte>> rows_;  // of each column
  std::uint64_t counted_bytes_ = 0;
};

}  // namespace

void convert_shards(const Plan& plan, const Options& options, const PlanRecord& record, const Hooks& hooks,
                    std::vector<std::uint64_t> todo, const std::map<std::uint64_t, ShardSummary>& missing,
                    Summary& summary) {
  const ShardWriterOptions writer{spec_of(options, plan)};
  Scheduler scheduler(plan, options, record, writer, std::move(todo), missing, options.claim, hooks);
  // The processes on this machine share its memory.
  const std::uint64_t processes = options.claim ? local_rank_count()
                                  : options.world_size > 1
                                      ? std::min<std::uint64_t>(options.world_size, local_rank_count())
                                      : 1;
  image::MemoryBudget memory(options.decode_memory_bytes != 0
                                 ? options.decode_memory_bytes
                                 : image::MemoryBudget::default_bytes(processes));
  std::optional<InputFetcher> fetcher;
  if (plan.list.on_server(plan.list.inputs.front()))
    fetcher.emplace(plan.list, plan.per_shard, [&] { return scheduler.ends(); });
  std::vector<std::unique_ptr<Worker>> workers;
  for (unsigned i = 0; i < options.threads(); ++i)
    workers.push_back(
        std::make_unique<Worker>(plan, options, scheduler, hooks, memory, fetcher ? &*fetcher : nullptr));
  run_threads(options.threads(), [&](unsigned thread) { workers[thread]->run(); });
  scheduler.finish();
  for (const auto& worker : workers) {
    summary.stages.read += worker->stages.read;
    summary.stages.preprocess += worker->stages.preprocess;
    summary.stages.store += worker->stages.store;
    summary.converted += worker->converted;
    summary.warnings.add(worker->warnings);
    summary.bytes_read += worker->bytes_read;
  }
  summary.converted_shards = scheduler.published();
  summary.stages.publish = scheduler.publish_seconds();
  summary.stages.wait = static_cast<double>(scheduler.wait_nanoseconds()) * 1e-9;
}

}  // namespace shard::convert
