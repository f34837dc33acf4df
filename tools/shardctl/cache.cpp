// cache: lists, verifies and removes the shards that loaders keep of data sets on servers.
#include <fmt/format.h>

#include <filesystem>

#include <memory>
#include "base/files/file_io.hpp"
#include "cli/output.hpp"
#include "cli/text.hpp"
#include "shard/cache.hpp"
#include "shard/keys.hpp"
#include "shard/shard_reader.hpp"
#include "shardctl/commands.hpp"
#include "shardctl/dataset/json_text.hpp"
#include "shardctl/dataset/source.hpp"
#include "shardctl/subcommand.hpp"

namespace shard::ctl {
namespace {

namespace fs = std::filesystem;
using State = CacheFile::State;

const char* name_of(State state) {
  switch (state) {
    case State::proven:
      return "proven";
    case State::unproven:
      return "not proven";
    case State::unfinished:
      return "unfinished";
    case State::foreign:
      break;
  }
  return "foreign";
}

// What is wrong with a whole shard in the cache; empty: every digest matches.
std::string problem_of(const fs::path& path) {
  try {
    const ShardReader reader = ShardReader::open(path);
    reader.verify_head();
    const std::size_t damaged = reader.damaged_ranges(open_read(path).get()).size();
    return damaged == 0 ? std::string() : fmt::format("{} ranges do not match their digests", damaged);
  } catch (const Error& error) {
    return error.what();
  }
}

struct Row {
  CacheFile file;
  std::string problem;
  bool removed = false;
};

void print_text(const CacheOptions& options, const std::vector<Row>& rows, std::uint64_t bytes) {
  using Align = cli::Table::Align;
  cli::Table table({Align::left, Align::right, Align::left});
  table.add_row({"file", "bytes", "state"});
  for (const Row& row : rows)
    table.add_row({escape_key(row.file.name), cli::human_count(row.file.size_bytes),
                   row.removed            ? "removed"
                   : !row.problem.empty() ? "damaged: " + row.problem
                                          : name_of(row.file.state)});
  if (!rows.empty()) cli::write_out(table.to_string());
  cli::out("{}: {}, {}\n", path_text(options.folder), cli::counted(rows.size(), "file"),
           cli::human_bytes(bytes));
}

void print_json(const CacheOptions& options, const std::vector<Row>& rows, std::uint64_t bytes) {
  Json files = Json::array();
  for (const Row& row : rows)
    files.push_back({{"file", escape_key(row.file.name)},
                     {"size_bytes", row.file.size_bytes},
                     {"state", name_of(row.file.state)},
                     {"problem", row.problem.empty() ? Json(nullptr) : Json(row.problem)},
                     {"removed", row.removed}});
  const Json json = {{"path", path_text(options.folder)}, {"size_bytes", bytes}, {"files", std::move(files)}};
  cli::write_out(json_text(json, 2) + "\n");
}

}  // namespace

int cache(const CacheOptions& options) {
  const fs::path folder = options.folder;
  std::vector<Row> rows;
  std::uint64_t bytes = 0;
  bool damaged = false;
  for (CacheFile& file : list_cache(folder)) {
    Row row{std::move(file), {}, false};
    const bool whole = row.file.state == State::proven || row.file.state == State::unproven;
    if (options.verify && whole) row.problem = problem_of(folder / row.file.name);
    const bool remove = options.remove || (options.remove_damaged && !row.problem.empty());
    if (remove) row.removed = remove_cached(folder, row.file);
    damaged = damaged || (!row.problem.empty() && !row.removed);
    bytes += row.file.size_bytes;
    rows.push_back(std::move(row));
  }
  options.json ? print_json(options, rows, bytes) : print_text(options, rows, bytes);
  return damaged ? kExitDifferent : kExitOk;
}

void add_cache(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<CacheOptions>();
  CLI::App* const command = app.add_subcommand("cache", R"(
      List the shards that loaders keep of data sets on servers, and verify or remove them

      A loader uses a shard of its cache if it was proven by its digests since the system was started, and proves it again otherwise. Files of
      others are listed as foreign and never removed.)");
  command->add_option("DIR", options->folder, "The folder that loaders were given as their cache")
      ->required();
  CLI::Option* verify_cache =
      command->add_flag("--verify", options->verify, "Compare every shard with its digests");
  command->add_flag("--remove-damaged", options->remove_damaged, "Remove what --verify finds damaged")
      ->needs(verify_cache);
  command->add_flag("--remove", options->remove, R"(
      Remove all shards, and what was left unfinished. Loaders that read them at this moment fail)");
  add_json(command, options->json);
  runs(command, chosen, [options] { return cache(*options); });
}

}  // namespace shard::ctl
