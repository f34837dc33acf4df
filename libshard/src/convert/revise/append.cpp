#include "convert/revise/append.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "base/files/file_io.hpp"
#include "base/files/publish.hpp"
#include "base/text/quote.hpp"
#include "convert/engine/steps.hpp"
#include "convert/publish/append_log.hpp"
#include "convert/publish/input_table.hpp"
#include "convert/publish/open_folder.hpp"
#include "convert/publish/pixel_bound.hpp"
#include "convert/publish/replace.hpp"
#include "convert/publish/tables.hpp"
#include "format/dataset/class_list.hpp"
#include "shard/convert/join.hpp"
#include "shard/convert/recorded.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"

namespace shard::convert {

namespace {

namespace fs = std::filesystem;

void require_data_set(const fs::path& out) {
  switch (folder_state(out)) {
    case FolderState::complete:
      return;
    case FolderState::absent:
    case FolderState::empty:
      throw Error(ErrorCode::not_found,
                  fmt::format("{} holds no data set that images could be added to: without `append`, this "
                              "command makes one",
                              quoted(out)));
    case FolderState::incomplete:
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} holds a conversion that is not finished: finish it first, with the command "
                              "that started it",
                              quoted(out)));
    case FolderState::foreign:
      break;
  }
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("{} holds no data set of shardify: there is nothing to add images to", quoted(out)));
}

// The summary of the part that these inputs are, if they were appended before.
std::optional<Summary> appended_before(const DatasetInfo& info, const std::string& source_digest) {
  std::uint64_t shard = 0;
  for (std::size_t i = 0; i < info.parts.size(); ++i) {
    const SourcePart& part = info.parts[i];
    if (i > 0 && part.source_digest == source_digest) {
      Summary summary;
      summary.complete = true;
      summary.was_complete = true;
      summary.inputs = part.inputs;
      summary.rejects = part.rejects;
      summary.samples = part.inputs - part.rejects;
      summary.shards = part.shards;
      for (std::uint64_t k = shard; k < shard + part.shards; ++k)
        summary.size_bytes += info.shards[k].size_bytes;
      return summary;
    }
    shard += part.shards;
  }
  return std::nullopt;
}

// The labels of the plan become those of the joined classes.
void join_labels(const DatasetInfo& info, Plan& plan, const fs::path& out) {
  if (info.classes.empty() != plan.labels.classes.empty())
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} {}: append images with labels of the same kind, or use another folder", quoted(out),
                    info.classes.empty() ? "has numbers for labels, and these images have classes"
                                         : "has classes, and these images have none"));
  ClassList classes;
  classes.add(info.classes);
  const auto labels = classes.add(plan.labels.classes);
  plan.labels.classes = classes.names();
  if (!labels) return;
  for (std::size_t at = 0; at < plan.labels.rows.size(); at += plan.labels.row_bytes)
    store_u64(plan.labels.rows, at, static_cast<std::uint64_t>((*labels)[load_u64(plan.labels.rows, at)]));
}

// Labels of a list of classes keep their numbers only if the data set has the same ones first.
void require_first_classes(const std::vector<std::string>& there, const std::vector<std::string>& asked,
                           const fs::path& out) {
  for (std::size_t i = 0; i < there.size(); ++i)
    if (i >= asked.size() || asked[i] != there[i])
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("label {} is {} in {}, and {} in `classes`: labels of a data set stay as they "
                              "are; give its own classes, "
                              "`classes` {}, also with further ones behind them",
                              i, quoted_key(there[i]), quoted(out),
                              i < asked.size() ? quoted_key(asked[i]) : "none", quoted(out)));
}

void refuse_known_keys(const Dataset& data, const Plan& plan) {
  const auto is_input = [&](const std::string& key) {
    return find_key(plan.list, unescape_key(key)) != nullptr;
  };
  std::string first;
  std::uint64_t count = 0;
  for (std::uint32_t i = 0; i < data.info().shards.size(); ++i) {
    const ShardReader& shard = data.shard(i);
    for (std::uint64_t sample = 0; sample < shard.size(); ++sample) {
      const std::string key = shard.key(sample);
      if (is_input(key) && count++ == 0) first = key;
    }
  }
  if (count == 0) return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("{} of the {} images are in {} already by their keys, first {}: append the others alone "
                  "(list them in a file, @FILE), or convert these images into another folder and use "
                  "`shardctl join`, which takes equal keys",
                  count, plan.list.inputs.size(), quoted(data.path()), quoted_key(first)));
}

// What an append is going to put into OUT, in a folder of its own name inside the staging folder.
// Removed unless it was decided.
class Draft {
 public:
  explicit Draft(const fs::path& out) : log_(out / kAppendLog) {
    std::string name = log_.string() + ".XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw_errno("cannot create a folder for", log_, errno);
    folder_ = name;
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft() {
    std::error_code error;
    if (!folder_.empty()) fs::remove_all(folder_, error);
  }
  const fs::path& folder() const { return folder_; }

  // Gives the folder the name of the log. False: another append is decided and not finished.
  bool decide() {
    if (::rename(folder_.c_str(), log_.c_str()) != 0) {
      if (errno == EEXIST || errno == ENOTEMPTY) return false;
      throw_errno("cannot rename a finished folder to", log_, errno);
    }
    folder_.clear();
    flush_folder(log_.parent_path());
    return true;
  }

 private:
  fs::path log_;
  fs::path folder_;
};

// Writes what will be in OUT, all three files at once: from then on the append is decided. `whole` is what
// OUT holds. Where locks do not work, another process may append at the same time: then only one of them
// decides, and for the data set that its tables were read from.
void decide(const fs::path& out, DatasetInfo whole, const std::string& source_digest) {
  const fs::path staging = out / kStagingFolder;
  const TableGuard old_guard(out);
  if (serialize_dataset(read_dataset_info(out)) != serialize_dataset(whole)) refuse_changed(out);
  const TableGuard staged_guard(staging);
  DatasetInfo added = read_dataset_info(staging);
  added.source_digest = source_digest;
  const std::uint64_t next = next_shard(whole);
  add_part(whole, added);
  whole.classes = added.classes;
  for (std::size_t i = 0; i < added.shards.size(); ++i) {
    whole.shards.push_back(added.shards[i]);
    whole.shards.back().file = shard_name(next + i);
  }
  Draft draft(out);
  std::vector<TableSummary> tables;
  const auto join_tables = [&](const char* name, std::string_view header) {
    TableFile table(draft.folder(), name, header);
    if (has_table(out, name) || whole.table(name) != nullptr)
      append_rows(old_guard, table, out / name, header, whole.table(name));
    append_rows(staged_guard, table, staging / name, header, added.table(name));
    table.publish();
    tables.push_back(table.summary());
  };
  if (has_table(out, kInputsFile) || whole.table(kInputsFile) != nullptr)  // earlier versions do not have it
    join_tables(kInputsFile, kInputsHeader);
  join_tables(kRejectsFile, kRejectsHeader);
  whole.tables = std::move(tables);
  publish_file(draft.folder() / kDatasetFile, serialize_dataset(whole));
  staged_guard.check();
  old_guard.check();
  if (!draft.decide()) refuse_changed(out);
}

// In the plan of what is staged: the data set to which it is to be added.
constexpr const char* kAppendsTo = "appends_to";

std::string state_digest(const DatasetInfo& info) { return to_hex(xxh3(serialize_dataset(info))); }

// What a process staged for a data set that has changed since is of no use to anybody: where locks exclude
// nobody, one of two equal appends may leave it.
void drop_outdated_staging(const fs::path& out, const DatasetInfo& info) {
  const fs::path staging = out / kStagingFolder;
  if (!is_present(staging)) return;
  try {
    const PlanRecord there = read_plan(staging);
    const auto to = there.options.find(kAppendsTo);
    if (there.stage != Stage::staged || to == there.options.end() || to->second == state_digest(info)) return;
  } catch (const Error& error) {  // without its plan nobody can go on with it
    if (error.code() == ErrorCode::io || error.code() == ErrorCode::resource) throw;
  }
  clear_append(out);
}

}  // namespace

void require_same_options(const DatasetInfo& info, const PlanRecord& record, const fs::path& out) {
  PlanRecord before = recorded_plan(info, record);
  before.inputs = record.inputs;
  const std::string text = differences_between(before, record);
  if (text.empty()) return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("{} was converted with other options:{}\ngive the recorded options to append to it, or "
                  "use another folder",
                  quoted(out), text));
}

Summary append_to(Plan plan, const Options& options, const PlanRecord& record, const Hooks& hooks) {
  const fs::path& out = options.out;
  if (folder_state(out) != FolderState::incomplete) require_data_set(out);
  FolderLock lock;
  if (lock.try_lock(out, true) == LockResult::busy) refuse_busy(out, lock.holder(), "");
  finish_replacement(out);
  finish_append(out);
  require_data_set(out);
  const DatasetInfo info = read_dataset_info(out);
  refuse_wrong_pages(info.provenance, out);
  require_same_options(info, record, out);
  if (auto summary = appended_before(info, plan.source_digest)) {
    if (const auto rejects = rejects_below(out, options.max_pixels, &plan.list); rejects.count != 0)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: append them alone (list them in a file, @FILE)",
                              describe(rejects, options.max_pixels)));
    drop_outdated_staging(out, info);
    return *summary;
  }
  // The staged folder is recognised by its conversion.json, so OUT must not have one too.
  if (has_leftovers(out)) remove_journal(out);

  if (!options.classes.empty()) require_first_classes(info.classes, plan.labels.classes, out);
  const std::string own_digest = plan.source_digest;
  join_labels(info, plan, out);
  refuse_known_keys(Dataset::open(out), plan);
  // What is staged belongs to this data set and these images.
  plan.source_digest = to_hex(xxh3(serialize_dataset(info) + own_digest));
  plan.names_digest = plan.source_digest;
  Options inner = options;
  inner.out = out / kStagingFolder;
  inner.append = false;
  PlanRecord staged = record;
  staged.stage = Stage::staged;
  staged.source_digest = plan.source_digest;
  staged.names_digest = plan.names_digest;
  staged.options[kAppendsTo] = state_digest(info);
  prepare_staging(inner.out, staged);
  Claim claim;
  claim.folder.try_lock(inner.out, true);
  Summary summary = convert_into(plan, inner, staged, hooks, claim);
  summary.was_complete = false;
  decide(out, info, own_digest);
  if (!finish_append(out)) refuse_changed(out);
  return summary;
}

}  // namespace shard::convert
