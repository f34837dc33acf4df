#include "shardctl/program.hpp"

#include <sys/resource.h>

#include <string>

#include "cli/cli.hpp"
#include "cli/run_main.hpp"
#include "shard/remote.hpp"
#include "shard/version.hpp"
#include "shardctl/subcommand.hpp"

namespace shard::ctl {
namespace {

// A data set keeps each shard that was used open: as many descriptors as the system grants.
void raise_descriptor_limit() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);  // a refusal leaves what was
}

int parse_and_run(int argc, char** argv) {
  CLI::App app(
      "Print, check, compare, export and repack data sets that shardify made, and find duplicates in them.",
      "shardctl");
  app.set_version_flag("--version",
                       std::string("shardctl ") + SHARD_VERSION_STRING + "\nservers: " + remote_library());
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
  app.footer(R"(
      ls, show, compare, duplicates, export, page, repack and stats compare what they read with its digests.

      Exit codes:
      - 0: no problem was found.
      - 1: samples or shards are damaged, or compare, duplicates or doctor found something.
      - 2: something cannot be read or written, the data set is incomplete, or the usage was wrong.

      The documentation is docs/shardctl.md.)");

  Chosen chosen;
  for (const auto add :
       {add_info, add_ls, add_verify, add_show, add_compare, add_duplicates, add_export, add_page, add_repack,
        add_split, add_join, add_copy, add_stats, add_cache, add_doctor})
    add(app, chosen);
  if (const auto code = cli::parse_arguments(app, argc, argv)) return *code;
  raise_descriptor_limit();
  return chosen();
}

}  // namespace

int run_program(int argc, char** argv) {
  return cli::run_main("shardctl", [&] { return parse_and_run(argc, argv); });
}

}  // namespace shard::ctl
