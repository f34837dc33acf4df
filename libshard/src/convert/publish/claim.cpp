#include "convert/publish/claim.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include "base/files/file.hpp"
#include "base/files/publish.hpp"
#include "base/text/quote.hpp"
#include "convert/plan/advice.hpp"
#include "convert/publish/input_table.hpp"
#include "convert/publish/pixel_bound.hpp"
#include "convert/publish/replace.hpp"
#include "shard/error.hpp"
#include "shard/remote.hpp"

namespace shard::convert {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// How long to wait for a process that has locked an empty folder: it is about to publish its plan.
constexpr auto kFolderPatience = std::chrono::seconds(10);
constexpr auto kFolderPoll = std::chrono::milliseconds(10);
constexpr std::size_t kShardsHere = 4;  // where finished shards leave the folder

std::map<std::uint64_t, ShardSummary> missing_shards(const Options& options, const DatasetInfo& info) {
  std::map<std::uint64_t, ShardSummary> missing;
  for (const ShardSummary& shard : info.shards) {
    std::error_code error;
    const fs::path path = options.out / shard.file;
    const bool regular = fs::is_regular_file(path, error);
    if (!error && regular && fs::file_size(path, error) == shard.size_bytes && !error) continue;
    const auto number = shard_number(shard.file);
    if (!number)
      throw Error(ErrorCode::corrupt,
                  fmt::format("shard {} is missing and was not made by shardify: restore it", quoted(path)));
    if (*number % options.world_size == options.rank) missing.emplace(*number, shard);
  }
  return missing;
}

// Removes what is left of a run that was killed after it published dataset.json, but before it had removed
// its own files.
void tidy(const Options& options, const PlanRecord& record, Claim& claim) {
  if (record.stage == Stage::staged || !has_leftovers(options.out)) return;
  const bool shared = claim.folder.held() && options.shared();
  if (claim.folder.try_lock(options.out, true) == LockResult::busy) return;  // that process does it
  if (!shared) finish_replacement(options.out);
  remove_journal(options.out);
}

std::string rank_text(const Options& options) {
  return options.world_size == 1 ? std::string()
                                 : fmt::format(" as rank {} of {}", options.rank, options.world_size);
}

// A line for the first class that is another one.
std::string class_change(const std::vector<std::string>& there, const std::vector<std::string>& asked) {
  const auto name = [](const std::vector<std::string>& of, std::size_t at) {
    return at < of.size() ? quoted_key(of[at]) : std::string("none");
  };
  std::size_t at = 0;
  while (at < there.size() && at < asked.size() && there[at] == asked[at]) ++at;
  if (at == there.size() && at == asked.size()) return {};
  return fmt::format("\n  labels: {} classes recorded, {} requested; label {} is {} recorded, {} requested",
                     there.size(), asked.size(), at, name(there, at), name(asked, at));
}

// The plan of the unfinished conversion in OUT. Nothing if another process has just completed it.
std::optional<PlanRecord> unfinished_plan(const fs::path& out) {
  try {
    return read_plan(out);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::not_found && folder_state(out) != FolderState::foreign)
      return std::nullopt;
    throw;
  }
}

}  // namespace

void record_values(Provenance& options, const DatasetSpec& spec) {
  const Normalization& n = spec.normalization;
  const std::vector<ColumnSpec>& columns = spec.columns;
  for (const FieldSpec& field : spec.fields) {
    std::string& fields = options["fields"];
    fields +=
        fmt::format("{}{} {}", fields.empty() ? "" : ", ", quoted_excerpt(field.name), to_string(field));
  }
  options["mean"] = fmt::format("{}", fmt::join(n.mean, ","));
  options["std"] = fmt::format("{}", fmt::join(n.std, ","));
  options["labels"] = to_string(columns.front());
  if (columns.size() == 1) return;
  std::string& others = options["columns"];
  others.clear();
  for (std::size_t c = 1; c < columns.size(); ++c)
    others +=
        fmt::format("{}{} {}", c == 1 ? "" : ", ", quoted_excerpt(columns[c].name), to_string(columns[c]));
}

PlanRecord recorded_plan(const DatasetInfo& info, const PlanRecord& asked) {
  PlanRecord there = asked;
  there.fingerprint = info.fingerprint;
  // Earlier versions recorded a digest of names and labels only, without the sizes of the inputs.
  const bool as_before = info.source_digest == asked.names_digest;
  there.source_digest = as_before ? asked.source_digest : info.source_digest;
  there.inputs = info.inputs;
  for (const char* only_if_used : {"on_warning", "columns", "fields", "further_images", "categories", "depth",
                                   "pages", "channels", "sample_digests", "decoded_from", "encoded_from"})
    there.options.erase(only_if_used);
  there.options["dtype"] = std::string(to_string(info.spec.dtype));
  there.options["layout"] = std::string(to_string(info.spec.layout));
  there.options["codec"] = to_string(info.codec);
  if (info.samples_per_shard != 0)
    there.options["samples_per_shard"] = std::to_string(info.samples_per_shard);
  if (!info.columns.empty()) record_values(there.options, info);
  for (const auto& [key, value] : info.provenance) there.options[key] = value;
  return there;
}

void refuse_parts(const DatasetInfo& info, const fs::path& out, const std::string& source_digest) {
  if (info.parts.empty()) return;
  const bool known = std::any_of(info.parts.begin(), info.parts.end(),
                                 [&](const SourcePart& part) { return part.source_digest == source_digest; });
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} was put together from {} conversions (`append` or `shardctl join`), and these "
                          "inputs are {}{}: {}",
                          quoted(out), info.parts.size(),
                          known ? "one of them, so they are in it already" : "none of them",
                          known ? "" : kAdviseToAppend, kAdviseForParts));
}

void refuse_foreign(const fs::path& out) {
  std::error_code error;
  const bool is_folder = fs::is_directory(out, error);
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} {}: choose an empty or a new folder", quoted(out),
                          is_folder ? "is not empty and holds no data set of shardify" : "is not a folder"));
}

void refuse_busy(const fs::path& out, std::int64_t pid, const std::string& as) {
  throw Error(
      ErrorCode::resource,
      fmt::format("{}: {} is at work there{}: wait until it has ended, then run the same command again",
                  quoted(out), process_text(pid), as));
}

bool dataset_is_there(const fs::path& out) {
  std::error_code error;
  return fs::exists(out / kDatasetFile, error);
}

DatasetInfo read_dataset_info(const fs::path& out) {
  constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 32U;
  const std::vector<std::byte> bytes = read_file(out / kDatasetFile, kMaxBytes);
  try {
    return parse_dataset({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", quoted(out), error.what()));
  }
}

void make_folders(const fs::path& folder) {
  if (is_remote(folder))
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format(
            "{} is an address, and this writes to a folder: give one, and upload it with shardctl copy",
            quoted(folder)));
  struct stat status {};
  if (::stat(folder.c_str(), &status) == 0) return;  // if it is not a folder, opening it fails later
  fs::path above = folder.has_filename() ? folder.parent_path() : folder.parent_path().parent_path();
  if (above.empty()) above = ".";
  if (errno == ENOENT && above != folder) make_folders(above);
  if (::mkdir(folder.c_str(), 0777) != 0) {
    const int error = errno;
    if (error == EEXIST) return;  // another process was quicker
    throw Error(ErrorCode::io, fmt::format("cannot make the folder {}: {}", quoted(folder),
                                           std::generic_category().message(error)));
  }
  try {
    flush_folder(above);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("the folder {} was made, but {}", quoted(folder), error.what()));
  }
}

std::vector<std::uint64_t> shards_of(const Plan& plan, const Options& options) {
  std::vector<std::uint64_t> shards;
  for (std::uint64_t shard = options.rank; shard < plan.shards(); shard += options.world_size)
    shards.push_back(shard);
  return shards;
}

void require_space(const Plan& plan, const Options& options, const std::vector<std::uint64_t>& todo,
                   bool shards_leave) {
  const SampleSpec spec = options.preprocess.sample_spec();
  std::uint64_t sample_bytes = options.codec.framed(spec) ? 0 : spec.size_bytes();
  for (const FurtherField& field : plan.further)
    if (!field.spec.codec.framed(field.spec.spec)) sample_bytes += field.spec.spec.size_bytes();
  if (sample_bytes == 0) return;  // sizes are not known yet; writing may still fail
  std::uint64_t samples = 0;
  const std::size_t counted = shards_leave ? std::min(todo.size(), kShardsHere) : todo.size();
  for (std::size_t i = 0; i < counted; ++i) samples += plan.shard_inputs(todo[i]);
  const std::uint64_t needed = samples * sample_bytes;
  struct statvfs info {};
  if (::statvfs(options.out.c_str(), &info) != 0) return;  // network file systems may not say
  const std::uint64_t free = std::uint64_t{info.f_bavail} * info.f_frsize;
  if (needed > free)
    throw Error(ErrorCode::io,
                fmt::format("{} has {} bytes free, but the {} samples still to be written need {} bytes: "
                            "free some space, use another disk, or choose a smaller `dtype` or `crop`, or "
                            "`codec` packed or zstd",
                            quoted(options.out), free, samples, needed));
}

void claim_folder(const Plan& plan, const Options& options, const PlanRecord& record, Claim& claim) {
  const fs::path& out = options.out;
  const bool alone = !options.shared();
  claim.complete = false;
  claim.missing.clear();
  make_folders(out);
  bool asked = claim.folder.held();
  const auto deadline = Clock::now() + kFolderPatience;
  for (;;) {
    const FolderState state = folder_state(out);
    if (state == FolderState::foreign) refuse_foreign(out);
    if (state == FolderState::complete) {
      const DatasetInfo info = read_dataset_info(out);
      refuse_parts(info, out, record.source_digest);
      require_same_plan(recorded_plan(info, record), record, out, [&] {
        return class_change(info.classes, plan.labels.classes) + describe_changes(out, nullptr, plan);
      });
      if (record.stage != Stage::staged && info.rejects != 0)
        if (const auto rejects = rejects_below(out, options.max_pixels); rejects.count != 0)
          throw Error(ErrorCode::invalid_argument,
                      fmt::format("{}: {}: use `refresh` to convert their shards again", quoted(out),
                                  describe(rejects, options.max_pixels)));
      claim.missing = missing_shards(options, info);
      if (claim.missing.empty()) tidy(options, record, claim);
      claim.complete = claim.missing.empty();
      if (claim.complete || asked) return;
    }
    if (!asked) {
      // If the folder holds a conversion with another plan, the error is about that, even if another process
      // works there.
      asked = claim.folder.try_lock(out, alone) != LockResult::busy;
      if (asked) continue;
      if (state == FolderState::empty && Clock::now() < deadline) {
        std::this_thread::sleep_for(kFolderPoll);
        continue;
      }
      if (state == FolderState::incomplete) {
        const auto there = unfinished_plan(out);
        if (!there) continue;
        require_same_plan(*there, record, out, [&] { return describe_changes(out, &*there, plan); });
      }
      refuse_busy(out, claim.folder.holder(), "");
    }
    if (alone && record.stage != Stage::staged && finish_replacement(out)) continue;
    if (state == FolderState::empty) {
      // Before the plan is published: after a lack of space, other options must still be possible.
      try {
        require_space(plan, options, shards_of(plan, options), claim.shards_leave);
      } catch (const Error& error) {
        if (!claim.may_lack_space) throw;
        claim.lack_of_space = error.what();
      }
      publish_new_file(out / kPlanFile, serialize_plan(record));
      continue;  // reads back the published plan, which may be that of another process
    }
    const auto there = unfinished_plan(out);
    if (!there) continue;
    if (there->stage == Stage::replacing)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format(
              "{} holds a data set whose replacement was interrupted: run this command once as a single "
              "process, which finishes the replacement, then start the other processes",
              quoted(out)));
    require_same_plan(*there, record, out, [&] { return describe_changes(out, &*there, plan); });
    claim.other_times = !there->times.empty() && there->times != record.times;
    if (options.claim) return;  // the shards are locked one by one
    switch (claim.rank.try_lock(out / kPlanFile, options.rank, options.world_size)) {
      case LockResult::busy:
        refuse_busy(out, claim.rank.holder(), rank_text(options));
      case LockResult::gone:
        continue;
      case LockResult::taken:
      case LockResult::unsupported:
        return;
    }
  }
}

}  // namespace shard::convert
