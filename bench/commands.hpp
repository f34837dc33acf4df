// The subcommands of shardbench: each adds itself to the parser and sets `command` when it was chosen.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <string>

namespace shard::bench {

void add_synth(CLI::App& app, std::function<int()>& command);
// `command_line` is kept in the JSON report.
void add_convert(CLI::App& app, std::function<int()>& command, const std::string& command_line);

void add_load(CLI::App& app, std::function<int()>& command, const std::string& command_line);
void add_decode(CLI::App& app, std::function<int()>& command, const std::string& command_line);
void add_device(CLI::App& app, std::function<int()>& command, const std::string& command_line);
void add_matmul(CLI::App& app, std::function<int()>& command, const std::string& command_line);
void add_memory(CLI::App& app, std::function<int()>& command, const std::string& command_line);
void add_pipeline(CLI::App& app, std::function<int()>& command, const std::string& command_line);
void add_report(CLI::App& app, std::function<int()>& command, const std::string& command_line);
void add_tiers(CLI::App& app, std::function<int()>& command, const std::string& command_line);
void add_upload(CLI::App& app, std::function<int()>& command, const std::string& command_line);
void add_write(CLI::App& app, std::function<int()>& command, const std::string& command_line);

}  // namespace shard::bench
