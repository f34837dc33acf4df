// A subcommand adds itself to the parser, with its options; main() runs the one that was given.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "cli/cli.hpp"
#include "shardctl/commands.hpp"

namespace shard::ctl {

// What the subcommand that was given does. Returns the exit code.
using Chosen = std::function<int()>;
// `run` is chosen if `command` is given. What is damaged so much that it cannot even be opened is damage too,
// and not a failure of the program.
void runs(CLI::App* command, Chosen& chosen, std::function<int()> run);

// Options that several subcommands have.
void add_path(CLI::App* command, std::string& path,
              const char* help = "The folder of a data set, its part FOLDER#NAME, or a shard");
void add_jobs(CLI::App* command, unsigned& jobs);
void add_quiet(CLI::App* command, bool& quiet, const char* help = "Print no progress");
void add_verify(CLI::App* command, bool& verify);
void add_json(CLI::App* command, bool& json);
void add_max_pixels(CLI::App* command, std::uint64_t& pixels);

void add_info(CLI::App& app, Chosen& chosen);
void add_ls(CLI::App& app, Chosen& chosen);
void add_verify(CLI::App& app, Chosen& chosen);
void add_show(CLI::App& app, Chosen& chosen);
void add_compare(CLI::App& app, Chosen& chosen);
void add_duplicates(CLI::App& app, Chosen& chosen);
void add_export(CLI::App& app, Chosen& chosen);
void add_page(CLI::App& app, Chosen& chosen);
void add_repack(CLI::App& app, Chosen& chosen);
void add_split(CLI::App& app, Chosen& chosen);
void add_join(CLI::App& app, Chosen& chosen);
void add_copy(CLI::App& app, Chosen& chosen);
void add_stats(CLI::App& app, Chosen& chosen);
void add_cache(CLI::App& app, Chosen& chosen);
void add_doctor(CLI::App& app, Chosen& chosen);

}  // namespace shard::ctl
