#include "shard/convert/convert.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <system_error>

#include "base/digest/checksum.hpp"
#include "base/files/file.hpp"
#include "base/files/publish.hpp"
#include "base/system/parallel.hpp"
#include "base/system/stopwatch.hpp"
#include "base/system/system_memory.hpp"
#include "base/text/quote.hpp"
#include "convert/annotations/class_labels.hpp"
#include "convert/engine/scheduler.hpp"
#include "convert/engine/steps.hpp"
#include "convert/plan/choose.hpp"
#include "convert/plan/decoding.hpp"
#include "convert/plan/further_reader.hpp"
#include "convert/plan/plan.hpp"
#include "convert/plan/recorded.hpp"
#include "convert/plan/small_images.hpp"
#include "convert/publish/claim.hpp"
#include "convert/publish/input_table.hpp"
#include "convert/publish/journal.hpp"
#include "convert/publish/replace.hpp"
#include "convert/publish/tables.hpp"
#include "convert/revise/append.hpp"
#include "convert/sources/input_fetcher.hpp"
#include "convert/sources/input_file.hpp"
#include "convert/transfer/to_store.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"
#include "shard/remote.hpp"

namespace shard::convert {

namespace {

namespace fs = std::filesystem;

}  // namespace

PlanRecord record_of(const DatasetSpec& spec, std::uint64_t per_shard) {
  PlanRecord record;
  record.fingerprint = spec.fingerprint;
  record.samples_per_shard = per_shard;
  record.options = spec.provenance;
  record.options["dtype"] = std::string(to_string(spec.spec.dtype));
  record.options["layout"] = std::string(to_string(spec.spec.layout));
  record.options["codec"] = to_string(spec.codec);
  record.options["samples_per_shard"] = std::to_string(per_shard);
  record_values(record.options, spec);
  return record;
}

PlanRecord record_of(const Plan& plan, const DatasetSpec& spec) {
  PlanRecord record = record_of(spec, plan.per_shard);
  record.source_digest = plan.source_digest;
  record.names_digest = plan.names_digest;
  record.inputs = plan.listed;
  return record;
}

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

Summary finished(const DatasetInfo& info, const Summary& run) {
  Summary whole = summary_of(info);
  whole.warnings = run.warnings;
  whole.converted = run.converted;
  whole.converted_shards = run.converted_shards;
  whole.bytes_read = run.bytes_read;
  whole.scan_seconds = run.scan_seconds;
  whole.convert_seconds = run.convert_seconds;
  whole.stages = run.stages;
  return whole;
}

namespace {

// Publishes dataset.json without replacing an existing one. If another process was faster, its file must be
// equal.
void publish_dataset_file(const fs::path& out, const std::string& json) {
  constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 32U;
  const fs::path path = out / kDatasetFile;
  if (publish_new_file(path, json)) return;
  const std::vector<std::byte> there = read_file(path, kMaxBytes);
  if (std::string_view(reinterpret_cast<const char*>(there.data()), there.size()) == json) return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("{} was written by another conversion at the same time, and its content differs: use one "
                  "`out` folder per conversion",
                  quoted(path)));
}

}  // namespace

bool publish_dataset(const fs::path& out, const PlanRecord& record, Ending ending, Summary& summary) {
  for (std::uint64_t shard = 0; shard < ending.shards;
       ++shard) {  // a cheap check, at which most ranks return
    std::error_code error;
    if (!fs::exists(receipt_path(out, shard), error)) return false;
  }
  DatasetInfo& info = ending.info;
  std::vector<Reject>& rejects = ending.rejects;
  image::WarningCounts warnings;
  TableFile inputs(out, kInputsFile, kInputsHeader);
  Xxh3Stream digest;
  for (std::uint64_t shard = 0; shard < ending.shards; ++shard) {
    auto receipt = finished_shard(out, record, shard);
    if (!receipt) return false;
    if (receipt->shard.samples != 0) info.shards.push_back(receipt->shard);
    warnings.add(receipt->warnings);
    rejects.insert(rejects.end(), receipt->rejects.begin(), receipt->rejects.end());
    inputs.append(receipt->inputs);
    digest.update(receipt->inputs);
  }
  // Check again that the folder holds this conversion: where locks do not work, another one may have taken
  // it.
  if (dataset_is_there(out)) return false;
  require_same_plan(read_plan(out), record, out);
  info.rejects = rejects.size();
  if (info.source_digest.empty()) {
    for (const std::string& name : info.classes) digest.update(name + '\0');
    info.source_digest = to_hex(digest.digest());
  }
  TableFile csv(out, kRejectsFile, kRejectsHeader);
  for (const Reject& reject : rejects)
    csv.append(csv_field(reject.key) + "," + csv_field(reject.reason) + "\n");
  csv.publish();
  if (info.shards.empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("none of the {} inputs could be stored: see the reasons in {}", info.inputs,
                            quoted(out / kRejectsFile)));
  inputs.publish();
  info.tables = {inputs.summary(), csv.summary()};
  publish_dataset_file(out, serialize_dataset(info));
  summary.warnings = warnings;
  summary = finished(info, summary);
  return true;
}

bool publish_dataset(const Plan& plan, const Options& options, const PlanRecord& record, Summary& summary) {
  Ending ending{plan.shards(), DatasetInfo(spec_of(options, plan)), plan.list.rejects};
  ending.info.samples_per_shard = plan.per_shard;
  ending.info.targets = plan.targets;
  ending.info.classes = plan.labels.classes;
  ending.info.source_digest = plan.source_digest;
  ending.info.inputs = plan.listed;
  return publish_dataset(options.out, record, std::move(ending), summary);
}

namespace {

// Converts what is missing in options.out and completes it. The plan and the receipts of a staged conversion
// stay, because a later run recognises it by them.
Summary run_in(const Plan& plan, const Options& options, const PlanRecord& record, const Hooks& hooks,
               Claim& claim) {
  const Stopwatch scan;
  claim_folder(plan, options, record, claim);
  Summary summary;
  if (claim.complete) {
    summary = summary_of(read_dataset_info(options.out));
    summary.was_complete = true;
    return summary;
  }
  remove_stale_temporaries(options.out);
  std::vector<std::uint64_t> todo;
  std::uint64_t planned = 0;
  std::uint64_t resumed = 0;
  for (const std::uint64_t shard : shards_of(plan, options)) {
    planned += plan.shard_inputs(shard);
    const bool done = claim.missing.empty() ? finished_shard(options.out, record, shard).has_value()
                                            : claim.missing.count(shard) == 0;
    if (done)
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
  summary.scan_seconds = scan.seconds();

  const Stopwatch conversion;
  if (!todo.empty()) convert_shards(plan, options, record, hooks, todo, claim.missing, summary);
  summary.convert_seconds = conversion.seconds();
  if (!dataset_is_there(options.out) && !publish_dataset(plan, options, record, summary) &&
      !dataset_is_there(options.out)) {
    summary.shards = summary.converted_shards;
    summary.samples = summary.converted;
    return summary;
  }
  // Also if another process published dataset.json first.
  summary = finished(read_dataset_info(options.out), summary);
  if (record.stage != Stage::staged) remove_journal(options.out);
  return summary;
}

}  // namespace

std::string few_bits_text(const image::WarningCounts& warnings) {
  const std::uint64_t count = warnings.images[static_cast<std::size_t>(image::Warning::few_bits)];
  if (count == 0) return {};
  return fmt::format(
      "{} of 16 bits {} values below 16384 only, and as 8 bits they keep the high byte of 16: at most 64 of "
      "256 "
      "levels. `depth` says how many bits the values have; `channels` keep or `dtype` u16 keeps them all",
      count == 1 ? std::string("1 image") : fmt::format("{} images", count), count == 1 ? "has" : "have");
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

namespace {

// Where images are appended. A class that is misspelled is a new one.
void warn_of_new_classes(const Options& options, Plan& plan) {
  if (!options.classes.empty() || !dataset_is_there(options.out)) return;
  const DatasetInfo there = read_dataset_info(options.out);
  if (there.classes.empty()) return;  // append_to() says that these labels are of another kind
  const std::string text = new_classes_warning(there.classes, plan.labels.classes, options.out.string());
  if (!text.empty()) plan.warnings.push_back(text);
}

// Not a repetition of a finished conversion.
bool starts_anew(const Options& options) {
  return options.overwrite || options.refresh || options.append || !dataset_is_there(options.out);
}

}  // namespace

Summary run(const Options& given, const Hooks& hooks) {
  const Stopwatch planning;
  Options options = given;
  options.check();
  if (is_remote(options.out)) return run_to_store(options, hooks, run);
  Plan plan = make_plan(options);
  options.preprocess = plan.preprocess;
  if (starts_anew(options)) {
    const SmallImages small = look_for_small_images(plan, options);
    if (small.many()) plan.warnings.push_back(enlargement_text(small, plan.preprocess));
  }
  if (options.append) warn_of_new_classes(options, plan);
  if (hooks.planned) hooks.planned(listing_of(plan));
  PlanRecord record = record_of(plan, spec_of(options, plan));
  record.max_pixels = options.max_pixels;
  const double plan_seconds = planning.seconds();
  if (options.append)
    return append_to(std::move(plan), options, record,
                     [&](const Plan& joined, const Options& there, const PlanRecord& staged, Claim& claim) {
                       Summary summary = run_in(joined, there, staged, hooks, claim);
                       summary.scan_seconds += plan_seconds;
                       return summary;
                     });
  const RunIn run_there = [&](const Options& there, const PlanRecord& staged, Claim& claim) {
    Summary summary = run_in(plan, there, staged, hooks, claim);
    summary.scan_seconds += plan_seconds;
    return summary;
  };
  const FolderState state = folder_state(options.out);
  if ((options.overwrite || options.refresh) &&
      (state == FolderState::complete || state == FolderState::incomplete))
    return replace_dataset(plan, options, record, hooks, run_there);
  Claim claim;
  return run_there(options, record, claim);
}

}  // namespace shard::convert
