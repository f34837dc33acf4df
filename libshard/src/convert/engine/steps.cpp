#include "convert/engine/steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/digest/checksum.hpp"
#include "base/files/file.hpp"
#include "base/files/publish.hpp"
#include "base/system/parallel.hpp"
#include "base/system/stopwatch.hpp"
#include "base/text/quote.hpp"
#include "convert/engine/plan_reader.hpp"
#include "convert/publish/input_table.hpp"
#include "convert/publish/tables.hpp"
#include "shard/convert/recorded.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"

namespace shard::convert {

namespace fs = std::filesystem;

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
  record.times = plan.times;
  record.inputs = plan.listed;
  return record;
}

Summary finished(const DatasetInfo& info, const Summary& run) {
  Summary whole = summary_of(info);
  whole.warnings = run.warnings;
  whole.jpeg = run.jpeg;
  whole.converted = run.converted;
  whole.converted_shards = run.converted_shards;
  whole.bytes_read = run.bytes_read;
  whole.scan_seconds = run.scan_seconds;
  whole.convert_seconds = run.convert_seconds;
  whole.stages = run.stages;
  return whole;
}

ShardToFill to_fill(const Plan& plan, const DatasetSpec& spec, std::uint64_t shard) {
  const std::uint64_t first = shard * plan.per_shard;
  ShardToFill next{shard, plan.shard_inputs(shard), ShardWriterOptions(spec)};
  for (std::uint64_t i = 0; i < next.rows; ++i)  // exact, so that no row moves when the head is written
    next.options.planned_key_bytes += plan.list.inputs[first + i].key().size();
  next.options.planned_rows = {next.rows};
  for (const ColumnTable& column : plan.columns)
    next.options.planned_rows.push_back(column.row_count(first, next.rows));
  return next;
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
  JpegCounts jpeg;
  TableFile inputs(out, kInputsFile, kInputsHeader);
  Xxh3Stream digest;
  for (std::uint64_t shard = 0; shard < ending.shards; ++shard) {
    auto receipt = finished_shard(out, record, shard);
    if (!receipt) return false;
    if (receipt->shard.samples != 0) info.shards.push_back(receipt->shard);
    warnings.add(receipt->warnings);
    jpeg.add(receipt->jpeg);
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
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("none of the {} inputs could be stored{}: see the reasons in {}", info.inputs,
                    rejects.empty() ? ""
                                    : fmt::format(" (the first, {}: {})", quoted_key(rejects.front().key),
                                                  rejects.front().reason),
                    quoted(out / kRejectsFile)));
  inputs.publish();
  info.tables = {inputs.summary(), csv.summary()};
  publish_dataset_file(out, serialize_dataset(info));
  summary.warnings = warnings;
  summary.jpeg = jpeg;
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

std::vector<StoredInput> stored_inputs(const Plan& plan, const Options& options, const PlanRecord& record) {
  std::vector<StoredInput> stored;
  read_input_rows(options.out, &record, [&](InputRow&& row) {
    if (row.digest && row.index < plan.list.inputs.size()) stored.push_back({row.index, *row.digest});
  });
  return stored;
}

void require_same_inputs(const Plan& plan, const Options& options, const std::vector<StoredInput>& stored,
                         const Hooks& hooks) {
  image::MemoryBudget memory(image::MemoryBudget::default_bytes());
  std::vector<std::unique_ptr<PlanReader>> readers(options.threads());
  std::atomic<std::uint64_t> changed{0};
  std::atomic<std::uint64_t> first{stored.size()};
  parallel_for(options.threads(), stored.size(), [&](unsigned thread, std::uint64_t i) {
    if (hooks.cancel != nullptr && *hooks.cancel) throw Error(ErrorCode::cancelled, "interrupted");
    if (!readers[thread]) readers[thread] = std::make_unique<PlanReader>(plan, options, hooks.cancel, memory);
    InputRow row;
    readers[thread]->take(stored[i].input / plan.per_shard, stored[i].input % plan.per_shard, row);
    try {
      readers[thread]->read(row);
    } catch (const UnreadableInput&) {
      row.digest.reset();
    }
    if (row.digest == stored[i].digest) return;
    ++changed;
    for (std::uint64_t least = first; i < least && !first.compare_exchange_weak(least, i);) continue;
  });
  if (changed == 0) return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("{} of {} images that are stored in {} are others now, with names and sizes as before, "
                  "first {}: give another folder, or begin anew",
                  changed.load(), stored.size(), quoted(options.out),
                  quoted_key(plan.list.inputs[stored[first].input].key())));
}

Summary convert_into(const Plan& plan, const Options& options, const PlanRecord& record, const Hooks& hooks,
                     Claim& claim) {
  const Stopwatch scan;
  claim_folder(plan, options, record, claim);
  Summary summary;
  if (claim.complete) {
    summary = summary_of(read_dataset_info(options.out));
    summary.was_complete = true;
    return summary;
  }
  if (claim.other_times) require_same_inputs(plan, options, stored_inputs(plan, options, record), hooks);
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
  require_space(plan, options, todo, claim.shards_leave);
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

}  // namespace shard::convert
