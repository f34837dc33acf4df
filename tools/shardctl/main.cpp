// shardctl: look at, check, compare, export and repack what shardify converted.
#include <fmt/format.h>
#include <sys/resource.h>

#include <functional>

#include "cli/cli.hpp"
#include "cli/output.hpp"
#include "cli/run_main.hpp"
#include "shard/error.hpp"
#include "shardctl/commands.hpp"

namespace shard::ctl {
namespace {

constexpr unsigned kMaxJobs = 1024;

// A data set keeps each shard that was used open: as many descriptors as the system grants.
void raise_descriptor_limit() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);  // a refusal leaves what was
}

void add_jobs(CLI::App* command, unsigned& jobs) {
  command->add_option("-j,--jobs", jobs, "Threads; 0: one a core")
      ->check(CLI::Range(0U, kMaxJobs))
      ->capture_default_str();
}
void add_quiet(CLI::App* command, bool& quiet, const char* help = "No progress line") {
  command->add_flag("-q,--quiet", quiet, help);
}
void add_verify(CLI::App* command, bool& verify) {
  command->add_flag("!--no-verify", verify, "Do not compare what is read with its digests");
}
void add_json(CLI::App* command, bool& json) { command->add_flag("--json", json, "Print JSON"); }
void add_max_pixels(CLI::App* command, std::uint64_t& pixels) {
  command->add_option("--max-pixels", pixels, "Refuse images with more pixels than this")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

// What is damaged so much that it cannot even be opened is damage too, and not a failure of the program.
int reading(const std::function<int()>& command) {
  try {
    return command();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt) throw;
    cli::flush_out();
    fmt::print(stderr, "shardctl: {}\n", error.what());
    return kExitDifferent;
  }
}

int run(int argc, char** argv) {
  CLI::App app("Look at, check, compare, export and repack data sets made by shardify.", "shardctl");
  app.set_version_flag("--version", std::string("shardctl ") + SHARD_VERSION);
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
  app.footer(
      "ls, show, compare, export, repack and stats check what they read.\n"
      "Exit codes: 0 fine; 1 damaged samples or shards were found, or compare found differences;\n"
      "2 bad usage, unreadable input or failed output.");

  InfoOptions info_options;
  CLI::App* info_command = app.add_subcommand("info", "What PATH holds and where its tensors lie");
  info_command->add_option("PATH", info_options.path, "A data set folder, a shard, or any safetensors file")
      ->required();
  add_json(info_command, info_options.json);

  LsOptions ls_options;
  CLI::App* ls_command = app.add_subcommand(
      "ls", "Index, label and key of every sample; the tensors of another safetensors file");
  ls_command->add_option("PATH", ls_options.path, "A data set folder or a shard")->required();
  CLI::Option* csv = ls_command->add_flag("--csv", ls_options.csv, "Print CSV: index,label,class,key");
  ls_command->add_flag("--json", ls_options.json, "Print JSON: a list with one line a sample")->excludes(csv);

  VerifyOptions verify_options;
  CLI::App* verify_command = app.add_subcommand(
      "verify", "Check every rule and every digest; names shard and sample of each failure");
  verify_command->add_option("PATH", verify_options.path, "A data set folder or a shard")->required();
  add_jobs(verify_command, verify_options.jobs);
  add_quiet(verify_command, verify_options.quiet, "Print failures only");
  add_json(verify_command, verify_options.json);

  ShowOptions show_options;
  CLI::App* show_command = app.add_subcommand("show", "Samples back as a PNG picture, with their labels");
  show_command->add_option("PATH", show_options.path, "A data set folder or a shard")->required();
  show_command->add_option("SAMPLES", show_options.samples,
                           "Indices as ls prints them, and ranges: 0..16 are the samples 0 to 15");
  show_command->add_option("-o,--output", show_options.output, "The picture to write (PNG)")->required();
  show_command->add_option("--count", show_options.count, "This many random samples instead of indices");
  show_command->add_option("--seed", show_options.seed, "Of the random samples")->capture_default_str();
  show_command->add_option("--columns", show_options.columns, "Tiles in a row; 0: about square")
      ->check(CLI::Range(0U, 65535U))
      ->capture_default_str();
  add_verify(show_command, show_options.verify);

  CompareOptions compare_options;
  CLI::App* compare_command =
      app.add_subcommand("compare", "Decode the images again and report how the samples differ");
  compare_command->add_option("PATH", compare_options.path, "A data set folder or a shard")->required();
  compare_command->add_option("IMAGES", compare_options.images, "The folder that it was made from")
      ->required();
  compare_command->add_option("--samples", compare_options.samples, "Only this many, evenly spread; 0: all")
      ->capture_default_str();
  add_max_pixels(compare_command, compare_options.max_pixels);
  add_jobs(compare_command, compare_options.jobs);
  add_quiet(compare_command, compare_options.quiet);
  add_json(compare_command, compare_options.json);

  ExportOptions export_options;
  CLI::App* export_command = app.add_subcommand("export", "Write the samples in another form");
  export_command->add_option("PATH", export_options.path, "A data set folder or a shard")->required();
  export_command
      ->add_option(
          "--npy", export_options.folder,
          "New or empty folder for images.npy (bfloat16 becomes float32), labels.npy, keys.txt, classes.txt")
      ->required();
  add_verify(export_command, export_options.verify);
  add_quiet(export_command, export_options.quiet, "Print nothing");

  RepackOptions repack_options;
  CLI::App* repack_command = app.add_subcommand(
      "repack", "The samples with another codec, without decoding images again; their checksums stay");
  repack_command->add_option("PATH", repack_options.path, "A data set folder")->required();
  repack_command
      ->add_option("NEW", repack_options.folder, "New or empty folder, or one of a repack that was stopped")
      ->required();
  repack_command->add_option("--codec", repack_options.codec, "none, packed, or zstd[:1..19]")->required();
  add_jobs(repack_command, repack_options.jobs);
  add_quiet(repack_command, repack_options.quiet, "Print nothing");

  StatsOptions stats_options;
  CLI::App* stats_command = app.add_subcommand("stats",
                                               "Mean and standard deviation of the channels, for --mean and "
                                               "--std of shardify; size with codec packed");
  stats_command
      ->add_option(
          "PATH", stats_options.path,
          "A data set folder, a shard, or images: a folder, @list.txt or - (resized to 256, cropped to 224)")
      ->required();
  add_verify(stats_command, stats_options.verify);
  add_max_pixels(stats_command, stats_options.max_pixels);
  add_jobs(stats_command, stats_options.jobs);
  add_quiet(stats_command, stats_options.quiet);
  add_json(stats_command, stats_options.json);

  if (const auto code = cli::parse_arguments(app, argc, argv)) return *code;
  raise_descriptor_limit();
  if (info_command->parsed()) return info(info_options);
  if (verify_command->parsed()) return verify(verify_options);
  return reading([&] {
    if (ls_command->parsed()) return ls(ls_options);
    if (show_command->parsed()) return show(show_options);
    if (compare_command->parsed()) return compare(compare_options);
    if (export_command->parsed()) return export_npy(export_options);
    if (repack_command->parsed()) return repack(repack_options);
    return stats(stats_options);
  });
}

}  // namespace
}  // namespace shard::ctl

int main(int argc, char** argv) {
  return shard::cli::run_main("shardctl", [&] { return shard::ctl::run(argc, argv); });
}
