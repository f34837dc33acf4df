// verify_set: the check of `shardctl verify` for finished data sets, for tools/quickstart, which builds
// nothing else of shardctl. Not installed.
#include <fmt/core.h>

#include <cstdio>
#include <string>
#include <vector>

#include "base/system/parallel.hpp"
#include "base/system/stopwatch.hpp"
#include "base/text/quote.hpp"
#include "cli/output.hpp"
#include "cli/run_main.hpp"
#include "cli/text.hpp"
#include "shard/convert/verify_tables.hpp"
#include "shard/dataset.hpp"
#include "shard/verify.hpp"

namespace shard::ctl {
namespace {

// Returns the number of problems, after a line for each and one for the whole.
std::uint64_t verify_set(const std::string& path) {
  const Stopwatch watch;
  const Dataset data = Dataset::open(path);
  VerifyFindings findings;
  convert::verify_tables(path, data.info(), findings);
  verify_shards(verify_tasks(data), thread_count(0), findings);
  for (const VerifyFailure& failure : findings.sorted()) {
    const std::string sample = failure.sample ? fmt::format(": sample {}", *failure.sample) : "";
    cli::out("{}{}: {}\n", failure.file, sample, failure.message);
  }
  cli::out("{}: {}: {}, {}, {} in {}\n", quoted(path),
           findings.count() == 0 ? "ok" : cli::counted(findings.count(), "problem") + " found",
           cli::counted(findings.shards, "shard"), cli::counted(findings.samples, "sample"),
           cli::human_bytes(findings.bytes), cli::human_duration(watch.seconds()));
  return findings.count();
}

int run(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("verify_set SET ...: checks every digest of data sets\n", stderr);
    return cli::kExitFailure;
  }
  std::uint64_t problems = 0;
  for (const std::string& path : std::vector<std::string>(argv + 1, argv + argc))
    problems += verify_set(path);
  return problems == 0 ? cli::kExitOk : 1;
}

}  // namespace
}  // namespace shard::ctl

int main(int argc, char** argv) {
  return shard::cli::run_main("verify_set", [&] { return shard::ctl::run(argc, argv); });
}
