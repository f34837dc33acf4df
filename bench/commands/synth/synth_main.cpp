// synth_photos: `shardbench synth` alone, for tools/quickstart. It has no options and so no parser, which
// takes longer to compile than the rest. Not installed.
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "cli/run_main.hpp"
#include "commands/synth/synth_run.hpp"

namespace {

bool parse(const char* text, std::uint64_t& number) {
  const char* const end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, number);
  return error == std::errc{} && stop == end;
}

int run(int argc, char** argv) {
  shard::bench::SynthOptions options;
  if (argc != 4 || !parse(argv[2], options.count) || !parse(argv[3], options.seed) || options.count == 0) {
    std::fputs("synth_photos DIR COUNT SEED: makes COUNT photos in DIR, as shardbench synth does\n", stderr);
    return shard::cli::kExitFailure;
  }
  options.folder = argv[1];
  return shard::bench::run_synth(options, false);
}

}  // namespace

int main(int argc, char** argv) {
  return shard::cli::run_main("synth_photos", [&] { return run(argc, argv); });
}
