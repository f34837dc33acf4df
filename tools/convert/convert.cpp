#include "convert/convert.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/statvfs.h>

#include <chrono>
#include <optional>
#include <system_error>
#include <thread>

#include "convert/input_file.hpp"
#include "convert/progress_file.hpp"
#include "convert/scheduler.hpp"
#include "shard/error.hpp"
#include "shard/file.hpp"
#include "shard/keys.hpp"

namespace shard::convert {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// What a data set records beside its pipeline, as text, so that a difference can be named.
void record_values(Pipeline& options, const Normalization& n, const ColumnSpec& labels) {
  options["mean"] = fmt::format("{},{},{}", n.mean[0], n.mean[1], n.mean[2]);
  options["std"] = fmt::format("{},{},{}", n.std[0], n.std[1], n.std[2]);
  options["labels"] = fmt::format("{} [{}]", to_string(labels.dtype), fmt::join(labels.row_shape, ", "));
}

PlanRecord record_of(const Plan& plan, const Options& options) {
  PlanRecord record;
  record.fingerprint = fingerprint_of(options, plan.labels.column);
  record.source_digest = plan.source_digest;
  record.inputs = plan.listed;
  record.samples_per_shard = plan.per_shard;
  record.options = pipeline_of(options);
  const SampleSpec spec = options.preprocess.sample_spec();
  record.options["dtype"] = std::string(to_string(spec.dtype));
  record.options["layout"] = std::string(to_string(spec.layout));
  record.options["codec"] = to_string(options.codec);
  record.options["samples_per_shard"] = std::to_string(plan.per_shard);
  record_values(record.options, options.preprocess.normalization, plan.labels.column);
  return record;
}

ShardWriterOptions writer_options(const Plan& plan, const Options& options, const PlanRecord& record) {
  ShardWriterOptions writer;
  writer.spec = options.preprocess.sample_spec();
  writer.normalization = options.preprocess.normalization;
  writer.pipeline = pipeline_of(options);
  writer.codec = options.codec;
  writer.fingerprint = record.fingerprint;
  writer.columns = {plan.labels.column};
  return writer;
}

PlanRecord read_plan(const fs::path& out) {
  constexpr std::uint64_t kMaxPlanBytes = std::uint64_t{1} << 20U;
  const std::vector<std::byte> text = read_file(out / kPlanFile, kMaxPlanBytes);
  return parse_plan({reinterpret_cast<const char*>(text.data()), text.size()});
}

bool dataset_is_there(const Options& options) {
  std::error_code error;
  return fs::exists(options.out / kDatasetFile, error);
}

// The record of a complete data set, as far as it can be held against the one asked for.
PlanRecord record_of(const DatasetInfo& info, const PlanRecord& asked) {
  PlanRecord there = asked;
  there.fingerprint = info.fingerprint;
  there.source_digest = info.source_digest;
  there.inputs = info.inputs;
  there.options["dtype"] = std::string(to_string(info.spec.dtype));
  there.options["layout"] = std::string(to_string(info.spec.layout));
  there.options["codec"] = to_string(info.codec);
  if (!info.columns.empty()) record_values(there.options, info.normalization, info.columns.front());
  for (const auto& [key, value] : info.pipeline) there.options[key] = value;
  return there;
}

Summary summary_of(const DatasetInfo& info) {
  Summary summary;
  summary.complete = true;
  summary.inputs = info.inputs;
  summary.samples = info.samples();
  summary.rejects = info.rejects;
  summary.shards = info.shards.size();
  for (const ShardSummary& shard : info.shards) summary.size_bytes += shard.size_bytes;
  return summary;
}

void require_space(const Plan& plan, const Options& options, const std::vector<std::uint64_t>& todo) {
  if (options.codec.kind != Codec::Kind::none) return;  // unknown before; a full disk is an error then
  std::uint64_t samples = 0;
  for (std::uint64_t shard : todo) samples += plan.shard_inputs(shard);
  const std::uint64_t needed = samples * options.preprocess.sample_spec().size_bytes();
  struct statvfs info {};
  if (::statvfs(options.out.c_str(), &info) != 0) return;  // network file systems may not say
  const std::uint64_t free = std::uint64_t{info.f_bavail} * info.f_frsize;
  if (needed > free)
    throw Error(
        ErrorCode::io,
        fmt::format(
            "'{}' has {} bytes free and {} more are needed for {} samples: free space, use another disk, "
            "or a smaller --dtype, --crop, or --codec packed or zstd",
            options.out.string(), free, needed, samples));
}

// The record of the conversion that OUT holds unfinished; nothing when another process has completed it
// meanwhile.
std::optional<PlanRecord> unfinished_plan(const Options& options) {
  try {
    return read_plan(options.out);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::not_found && dataset_is_there(options)) return std::nullopt;
    throw;
  }
}

// Removes what an earlier conversion left. A kill in between leaves a folder that says so, and the next run
// goes on here.
void make_empty(const Options& options, const PlanRecord& record) {
  if (options.world > 1)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format(
            "'{}' is half removed (a run with --overwrite was stopped), which several processes cannot "
            "finish: remove it, then start them",
            options.out.string()));
  PlanRecord overwriting = record;
  overwriting.overwriting = true;
  publish_file(options.out / kPlanFile, serialize_plan(overwriting));
  remove_dataset_files(options.out);
}

std::vector<std::uint64_t> shards_of(const Plan& plan, const Options& options) {
  std::vector<std::uint64_t> shards;
  for (std::uint64_t shard = options.rank; shard < plan.shards(); shard += options.world)
    shards.push_back(shard);
  return shards;
}

// Makes OUT a folder that holds the record asked for. True: the data set in it is complete already.
bool claim_folder(const Plan& plan, const Options& options, const PlanRecord& record) {
  std::error_code error;
  fs::create_directories(options.out, error);
  if (error)
    throw Error(ErrorCode::io,
                fmt::format("cannot make the folder '{}': {}", options.out.string(), error.message()));
  FolderState state = folder_state(options.out);
  if (state == FolderState::foreign)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("'{}' is not empty and holds no data set of shardify: choose an empty or new folder",
                    options.out.string()));
  std::optional<PlanRecord> unfinished;
  if (state == FolderState::incomplete) {
    unfinished = unfinished_plan(options);
    if (!unfinished) state = FolderState::complete;
  }
  if (state != FolderState::empty && (options.overwrite || (unfinished && unfinished->overwriting))) {
    make_empty(options, record);
  } else if (state == FolderState::complete) {
    require_same_plan(record_of(Dataset::open(options.out).info(), record), record, options.out);
    remove_progress_files(options.out);  // a run that was killed between dataset.json and its last removals
    return true;
  } else if (unfinished) {
    require_same_plan(*unfinished, record, options.out);
    return false;
  }
  // Before the record is there: who has no space may come back with other options.
  if (!unfinished) require_space(plan, options, shards_of(plan, options));
  publish_file(options.out / kPlanFile, serialize_plan(record));
  return false;
}

// One worker thread's run.
class Worker {
 public:
  Worker(const Plan& plan, const Options& options, Scheduler& scheduler, const Hooks& hooks)
      : plan_(plan),
        options_(options),
        scheduler_(scheduler),
        hooks_(hooks),
        reader_(plan.list.root),
        preprocessor_(options.preprocess),
        sample_(options.preprocess.sample_spec().size_bytes()) {
    decode_.max_pixels = options.max_pixels;
    decode_.cancel = hooks.cancel;
    if (options.fast_decode) decode_.fast_min_short_side = fast_decode_side(options.preprocess);
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

 private:
  void convert(const Item& item) {
    const Input& input = plan_.list.inputs[item.index];
    const std::uint64_t row = item.index - item.job->first;
    const auto begin = Clock::now();
    auto read_done = begin;
    try {
      const std::span<const std::byte> file = reader_.read(input.path);
      bytes_read += file.size();
      read_done = Clock::now();
      preprocessor_.run_file(decoder_, file, decode_, sample_);
    } catch (const Error& error) {
      const bool ours = error.code() == ErrorCode::cancelled || error.code() == ErrorCode::invalid_argument ||
                        (error.code() == ErrorCode::resource && read_done == begin &&
                         dynamic_cast<const UnreadableInput*>(&error) == nullptr);
      if (ours) throw;
      reject(item, row, input, error.what());
      return;
    }
    const auto preprocessed = Clock::now();
    const std::span<const std::byte> labels(plan_.labels.rows.data() + item.index * plan_.labels.row_bytes,
                                            plan_.labels.row_bytes);
    item.job->writer.put(row, input.key(), labels, sample_);
    ++item.job->stored;
    ++converted;
    const auto stored = Clock::now();
    stages.read += std::chrono::duration<double>(read_done - begin).count();
    stages.preprocess += std::chrono::duration<double>(preprocessed - read_done).count();
    stages.store += std::chrono::duration<double>(stored - preprocessed).count();
    if (hooks_.counters != nullptr) {
      hooks_.counters->stored += 1;
      hooks_.counters->bytes_stored += sample_.size();
      hooks_.counters->bytes_read += bytes_read - counted_bytes_;
      counted_bytes_ = bytes_read;
    }
  }

  void reject(const Item& item, std::uint64_t row, const Input& input, const std::string& reason) {
    if (options_.on_error == OnError::fail)
      throw Error(ErrorCode::corrupt, fmt::format("'{}': {} (--on-error fail)", input.key(), reason));
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
  image::Decoder decoder_;
  image::Preprocessor preprocessor_;
  image::DecodeOptions decode_;
  std::vector<std::byte> sample_;
  std::uint64_t counted_bytes_ = 0;
};

void convert_shards(const Plan& plan, const Options& options, const PlanRecord& record, const Hooks& hooks,
                    std::vector<std::uint64_t> todo, Summary& summary) {
  const ShardWriterOptions writer = writer_options(plan, options, record);
  Scheduler scheduler(plan, options, writer, std::move(todo), hooks.cancel);
  std::vector<std::unique_ptr<Worker>> workers;
  for (unsigned i = 0; i < options.threads(); ++i)
    workers.push_back(std::make_unique<Worker>(plan, options, scheduler, hooks));
  {
    std::vector<std::jthread> threads;
    try {
      for (auto& worker : workers) threads.emplace_back([&worker] { worker->run(); });
    } catch (const std::system_error& error) {
      scheduler.fail(std::make_exception_ptr(Error(
          ErrorCode::resource,
          fmt::format("cannot start {} threads: {} (use fewer --jobs)", workers.size(), error.what()))));
    }
  }
  scheduler.finish();
  for (const auto& worker : workers) {
    summary.stages.read += worker->stages.read;
    summary.stages.preprocess += worker->stages.preprocess;
    summary.stages.store += worker->stages.store;
    summary.converted += worker->converted;
    summary.bytes_read += worker->bytes_read;
  }
  summary.stages.publish = scheduler.publish_seconds();
  summary.stages.wait = static_cast<double>(scheduler.wait_nanoseconds()) * 1e-9;
}

// rejects.csv, then dataset.json, once every shard is finished. False: other processes still work, or nothing
// was stored.
bool publish_dataset(const Plan& plan, const Options& options, const PlanRecord& record, Summary& summary) {
  DatasetInfo info;
  info.spec = options.preprocess.sample_spec();
  info.normalization = options.preprocess.normalization;
  info.pipeline = pipeline_of(options);
  info.codec = options.codec;
  info.fingerprint = record.fingerprint;
  info.columns = {plan.labels.column};
  info.classes = plan.labels.classes;
  info.source_digest = plan.source_digest;
  info.inputs = plan.listed;
  std::vector<Reject> rejects = plan.list.rejects;
  for (std::uint64_t shard = 0; shard < plan.shards(); ++shard) {
    auto receipt = finished_shard(options.out, shard);
    if (!receipt) return false;
    if (receipt->shard.samples != 0) info.shards.push_back(receipt->shard);
    rejects.insert(rejects.end(), receipt->rejects.begin(), receipt->rejects.end());
  }
  info.rejects = rejects.size();
  std::string csv = "path,reason\n";
  for (const Reject& reject : rejects) csv += csv_field(reject.key) + "," + csv_field(reject.reason) + "\n";
  publish_file(options.out / kRejectsFile, csv);
  if (info.shards.empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("none of the {} inputs could be stored; the reasons are in '{}'", plan.listed,
                            (options.out / kRejectsFile).string()));
  publish_file(options.out / kDatasetFile, serialize_dataset(info));
  summary = [&] {
    Summary whole = summary_of(info);
    whole.converted = summary.converted;
    whole.bytes_read = summary.bytes_read;
    whole.scan_seconds = summary.scan_seconds;
    whole.convert_seconds = summary.convert_seconds;
    whole.stages = summary.stages;
    return whole;
  }();
  return true;
}

}  // namespace

Summary run(const Options& options, const Hooks& hooks) {
  const auto begin = Clock::now();
  options.check();
  const Plan plan = make_plan(options);
  const PlanRecord record = record_of(plan, options);

  Summary summary;
  if (claim_folder(plan, options, record)) {
    summary = summary_of(Dataset::open(options.out).info());
    summary.was_complete = true;
    return summary;
  }
  remove_stale_temporaries(options.out);
  std::vector<std::uint64_t> todo;
  std::uint64_t planned = 0;
  std::uint64_t resumed = 0;
  for (const std::uint64_t shard : shards_of(plan, options)) {
    planned += plan.shard_inputs(shard);
    if (finished_shard(options.out, shard))
      resumed += plan.shard_inputs(shard);
    else
      todo.push_back(shard);
  }
  if (hooks.counters != nullptr) {
    hooks.counters->planned = planned;
    hooks.counters->resumed = resumed;
  }
  require_space(plan, options, todo);
  summary.inputs = plan.listed;
  summary.scan_seconds = seconds_since(begin);

  const auto convert_begin = Clock::now();
  if (!todo.empty() && !dataset_is_there(options))
    convert_shards(plan, options, record, hooks, todo, summary);
  summary.convert_seconds = seconds_since(convert_begin);
  if (!dataset_is_there(options) && !publish_dataset(plan, options, record, summary)) {
    if (dataset_is_there(options)) {  // another process was quicker and has removed the receipts
      summary.complete = true;
      return summary;
    }
    summary.shards = todo.size();
    summary.samples = summary.converted;
    return summary;
  }
  summary.complete = true;
  remove_progress_files(options.out);
  return summary;
}

}  // namespace shard::convert
