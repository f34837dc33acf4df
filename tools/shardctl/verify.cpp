// verify: a data set or one shard, every digest and every rule; goes on after each failure and reports all of
// them.
#include <fmt/format.h>

#include <filesystem>
#include <set>
#include <system_error>

#include <memory>
#include "base/files/file.hpp"
#include "base/system/parallel.hpp"
#include "base/system/stopwatch.hpp"
#include "base/text/quote.hpp"
#include "cli/flags.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/text.hpp"
#include "shard/convert/recorded.hpp"
#include "shard/convert/tables.hpp"
#include "shard/convert/verify_tables.hpp"
#include "shard/keys.hpp"
#include "shard/remote.hpp"
#include "shard/verify.hpp"
#include "shardctl/commands.hpp"
#include "shardctl/dataset/files.hpp"
#include "shardctl/dataset/json_text.hpp"
#include "shardctl/dataset/source.hpp"
#include "shardctl/subcommand.hpp"

namespace shard::ctl {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxTextBytes = std::uint64_t{1} << 30U;

std::string read_text(const fs::path& path) {
  const auto bytes = read_file(path, kMaxTextBytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Files that belong to the data set or not.
convert::TableChecks check_folder(const fs::path& folder, const DatasetInfo& info, VerifyFindings& findings) {
  std::set<std::string> listed;
  for (const ShardSummary& shard : info.shards) listed.insert(shard.file);
  for (const std::string& file : list_shard_files(folder)) {
    if (!listed.contains(file)) {
      findings.add({escape_key(file),
                    std::nullopt,
                    {},
                    "is not named by dataset.json: it is not part of the data set; remove it"});
    }
  }
  return convert::verify_tables(folder, info, findings);
}

// The same, if the folder still holds this data set. While images are appended, or after that was stopped, it
// has files that belong to the data set to come.
convert::TableChecks check_settled_folder(const fs::path& folder, const DatasetInfo& info,
                                          VerifyFindings& findings) {
  VerifyFindings found;
  const convert::TableChecks checks = check_folder(folder, info, found);
  if (found.count() == 0) return checks;
  const bool pending = convert::append_is_pending(folder);
  const auto now = [&] { return serialize_dataset(parse_dataset(read_text(folder / kDatasetFile))); };
  if (pending || now() != serialize_dataset(info)) {
    cli::flush_out();
    fmt::print(stderr, "shardctl: {}: images are being appended, or an append was stopped{}\n",
               path_text(folder), pending ? ": the same shardify --append command finishes it" : "");
    return {};
  }
  for (VerifyFailure& failure : found.sorted()) findings.add(std::move(failure));
  return checks;
}

std::optional<DatasetInfo> read_dataset(const fs::path& folder, VerifyFindings& findings) {
  try {
    return parse_dataset(read_text(folder / kDatasetFile));
  } catch (const Error& error) {
    findings.add({kDatasetFile, std::nullopt, {}, error.what(), error.code()});
    return std::nullopt;
  }
}

// Nothing: what describes it is damaged.
std::optional<Dataset> open_remote(const fs::path& path, VerifyFindings& findings) {
  try {
    return Dataset::open(path);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt) throw;
    findings.add({escape_key(path.filename().native()), std::nullopt, {}, error.what(), error.code()});
    return std::nullopt;
  }
}

std::string where(const VerifyFailure& failure) {
  std::string text = failure.file;
  if (failure.sample) text += fmt::format(": sample {}", *failure.sample);
  if (!failure.key.empty()) text += fmt::format(" ({})", failure.key);
  return text;
}

// A lone file that is somebody else's safetensors file is not a damaged shard. One flipped byte cannot remove
// all the names that a shard's metadata has.
void refuse_foreign_file(const fs::path& path) {
  SafetensorsFile file;
  try {
    file = read_safetensors_head(path);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::corrupt || error.code() == ErrorCode::unsupported)
      return;  // verify_shards says what is wrong
    throw;
  }
  for (const char* name : {"shard.profile", "head_digest", "fingerprint"}) {
    if (file.header.metadata.contains(name)) return;
  }
  throw Error(
      ErrorCode::unsupported,
      fmt::format(
          "{}: a safetensors file, but not a shard: only shards have digests to verify; `shardctl info` "
          "lists its tensors",
          quoted(path)));
}

struct Outcome {
  const char* state = "";  // "complete", "incomplete", "part", "shard"
  int code = kExitOk;
  double seconds = 0;
  std::optional<convert::TableChecks> tables;  // of a whole data set
};

int exit_code(const std::vector<VerifyFailure>& failures, bool incomplete) {
  for (const VerifyFailure& failure : failures) {
    if (failure.code == ErrorCode::corrupt) return kExitDifferent;
  }
  return failures.empty() && !incomplete ? kExitOk : kExitFailure;
}

Json tables_json(const Outcome& outcome) {
  if (!outcome.tables) return nullptr;
  return {{kInputsFile, convert::to_string(outcome.tables->inputs)},
          {kRejectsFile, convert::to_string(outcome.tables->rejects)}};
}

// What could not be checked, because an earlier version wrote the data set.
void print_unchecked(const Outcome& outcome) {
  using convert::TableCheck;
  if (!outcome.tables) return;
  const auto print = [](TableCheck check, const char* file, const char* checked, const char* unchecked) {
    if (check == TableCheck::by_form)
      cli::out("{}: {}; {} cannot be checked, because dataset.json has no digest of it\n", file, checked,
               unchecked);
  };
  print(outcome.tables->inputs, kInputsFile, "its keys are those of the samples and rejects",
        "the sizes and digests of the inputs");
  print(outcome.tables->rejects, kRejectsFile, "it has as many lines as there are rejects",
        "paths and reasons");
  if (outcome.tables->inputs == TableCheck::absent) cli::out("{}: this data set has none\n", kInputsFile);
}

void print_json(const VerifyOptions& options, const Outcome& outcome, const VerifyFindings& findings,
                const std::vector<VerifyFailure>& failures) {
  Json list = Json::array();
  for (const VerifyFailure& failure : failures) {
    Json entry = {{"file", failure.file}};
    entry["sample"] = failure.sample ? Json(*failure.sample) : Json(nullptr);
    entry["key"] = failure.key.empty() ? Json(nullptr) : Json(failure.key);
    entry["code"] = to_string(failure.code);
    entry["error"] = failure.message;
    list.push_back(std::move(entry));
  }
  const Json json = {{"path", path_text(options.path)},    {"state", outcome.state},
                     {"ok", outcome.code == kExitOk},      {"shards", findings.shards.load()},
                     {"samples", findings.samples.load()}, {"bytes", findings.bytes.load()},
                     {"seconds", outcome.seconds},         {"tables", tables_json(outcome)},
                     {"failures", std::move(list)}};
  cli::write_out(json_text(json, 2) + "\n");
}

void print_text(const VerifyOptions& options, const Outcome& outcome, const VerifyFindings& findings,
                const std::vector<VerifyFailure>& failures) {
  for (const VerifyFailure& failure : failures) cli::out("{}: {}\n", where(failure), failure.message);
  if (options.quiet) return;
  const std::string what = fmt::format(
      "{}, {}, {} in {}", cli::counted(findings.shards, "shard"), cli::counted(findings.samples, "sample"),
      cli::human_bytes(findings.bytes), cli::human_duration(outcome.seconds));
  if (failures.empty()) {
    const bool incomplete = std::string_view(outcome.state) == "incomplete";
    print_unchecked(outcome);
    cli::out("{}: {}: {}\n", path_text(options.path), incomplete ? "published so far, ok" : "ok", what);
  } else {
    cli::out("{}: {} found: {}\n", path_text(options.path), cli::counted(failures.size(), "problem"), what);
  }
}

}  // namespace

int verify(const VerifyOptions& options) {
  const Stopwatch watch;
  const fs::path path = options.path;
  VerifyFindings findings;
  std::optional<DatasetInfo> dataset;
  std::vector<VerifyTask> tasks;
  Outcome outcome;
  std::error_code error;
  std::optional<Dataset> part;
  if (const DatasetPath of = parse_dataset_path(path); !of.selection.empty()) {
    require_dataset_folder(of.folder);
    outcome.state = "part";
    part = Dataset::open(path);
    tasks = verify_tasks(*part);
  } else if (is_remote(path)) {
    outcome.state = path.extension() == ".safetensors" ? "shard" : "complete";
    part = open_remote(path, findings);
    if (part) tasks = verify_tasks(*part);
    if (part && !part->is_lone_shard()) outcome.tables = convert::verify_tables(path, part->info(), findings);
  } else if (fs::exists(path, error) && !fs::is_directory(path, error)) {
    outcome.state = "shard";
    if (fs::is_regular_file(path, error)) refuse_foreign_file(path);
    tasks.push_back({path, nullptr, nullptr});
  } else {
    const bool complete = require_dataset_folder(path) == FolderState::complete;
    outcome.state = complete ? "complete" : "incomplete";
    if (complete) dataset = read_dataset(path, findings);
    if (dataset) {
      outcome.tables = check_settled_folder(path, *dataset, findings);
      tasks = verify_tasks(path, *dataset);
    } else {
      for (const std::string& file : list_shard_files(path)) tasks.push_back({path / file, nullptr, nullptr});
    }
  }
  cli::Progress progress(options.quiet ? cli::ProgressMode::quiet : cli::ProgressMode::automatic);
  verify_shards(tasks, thread_count(options.jobs), findings, [&] {
    if (!progress.due()) return;
    const double seconds = watch.seconds();
    const std::uint64_t bytes = findings.bytes;
    progress.update(
        fmt::format("{} of {} shards, {} samples, {} at {}/s, {} failures", findings.shards.load(),
                    tasks.size(), cli::human_count(findings.samples), cli::human_bytes(bytes),
                    cli::human_bytes(static_cast<std::uint64_t>(static_cast<double>(bytes) / seconds)),
                    findings.count()));
  });
  progress.finish();

  const std::vector<VerifyFailure> failures = findings.sorted();
  const bool incomplete = std::string_view(outcome.state) == "incomplete";
  outcome.code = exit_code(failures, incomplete);
  outcome.seconds = watch.seconds();
  options.json ? print_json(options, outcome, findings, failures)
               : print_text(options, outcome, findings, failures);
  if (dataset && convert::has_wrong_pages(dataset->provenance)) {
    cli::flush_out();
    fmt::print(stderr, "shardctl: {}: the digests are right and the pixels are wrong: {}\n", path_text(path),
               cli::with_flags(convert::kWrongPages));
  }
  if (incomplete) {
    cli::flush_out();
    fmt::print(stderr, "shardctl: {}: incomplete: run the same shardify command again to finish it\n",
               path_text(path));
  }
  return outcome.code;
}

void add_verify(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<VerifyOptions>();
  CLI::App* const command = app.add_subcommand("verify", R"(
      Check every rule of the format and every digest

      Prints one line per problem, with shard, sample and key, and then the totals.)");
  add_path(command, options->path);
  add_jobs(command, options->jobs);
  add_quiet(command, options->quiet, "Print problems only");
  add_json(command, options->json);
  command->callback([&chosen, options] { chosen = [options] { return verify(*options); }; });
}

}  // namespace shard::ctl
