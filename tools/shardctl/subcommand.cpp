#include "shardctl/subcommand.hpp"

#include <fmt/format.h>

#include <utility>

#include "cli/flags.hpp"
#include "cli/output.hpp"
#include "shard/error.hpp"

namespace shard::ctl {

namespace {

constexpr unsigned kMaxJobs = 1024;

int reading(const std::function<int()>& command) {
  try {
    return command();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt) throw;
    cli::flush_out();
    fmt::print(stderr, "shardctl: {}\n", cli::with_flags(error.what()));
    return kExitDifferent;
  }
}

}  // namespace

void runs(CLI::App* command, Chosen& chosen, std::function<int()> run) {
  command->callback([&chosen, run = std::move(run)] { chosen = [run] { return reading(run); }; });
}

void add_path(CLI::App* command, std::string& path, const char* help) {
  command->add_option("PATH", path, help)->required();
}
void add_jobs(CLI::App* command, unsigned& jobs) {
  command->add_option("-j,--jobs", jobs, "Threads; 0 means one per core")
      ->check(CLI::Range(0U, kMaxJobs))
      ->capture_default_str();
}
void add_quiet(CLI::App* command, bool& quiet, const char* help) {
  command->add_flag("-q,--quiet", quiet, help);
}
void add_verify(CLI::App* command, bool& verify) {
  command->add_flag("!--no-verify", verify, "Do not compare samples with their digests");
}
void add_json(CLI::App* command, bool& json) { command->add_flag("--json", json, "Print JSON"); }
void add_max_pixels(CLI::App* command, std::uint64_t& pixels) {
  command->add_option("--max-pixels", pixels, "Reject images with more pixels")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

}  // namespace shard::ctl
