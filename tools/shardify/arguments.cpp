#include "shardify/arguments.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/cli.hpp"
#include "cli/config_file.hpp"
#include "cli/help_format.hpp"
#include "shard/convert/rank.hpp"
#include "shard/convert/text_options.hpp"
#include "shard/error.hpp"
#include "shard/image/decode.hpp"
#include "shard/remote.hpp"
#include "shard/version.hpp"

namespace shard::shardify {

namespace {

// Takes rank and world size from the launcher. `world`: --world-size, if it is given.
void ask_launcher(std::optional<std::uint32_t> world, Arguments& arguments) {
  if (world == 0U) throw Error(ErrorCode::invalid_argument, "--world-size 0: expected 1 or more");
  if (const auto found = convert::rank_from_environment(world)) {
    arguments.options.rank = found->rank;
    arguments.options.world_size = found->world_size;
    arguments.rank_source = found->source + "; --rank 0 --world-size 1 does all the work in one process";
    arguments.wait_for_others = found->all_or_none;
  } else if (world) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--world-size {} without --rank, and no launcher gives a rank: give each process "
                            "its --rank, 0 to {}",
                            *world, *world - 1));
  }
}

// What the parser fills besides `Arguments`: text that is parsed further, and whether an option was given.
struct Given {
  convert::TextOptions text;
  CLI::Option* rank = nullptr;
  CLI::Option* world = nullptr;
};

void add_text_option(CLI::App& app, const convert::TextOption& option, convert::TextOptions& text) {
  const std::string flag(option.flag);
  const std::string help(option.help);
  const std::string name(option.name);
  if (option.value.empty()) {
    app.add_flag_function(
           flag,
           [&text, name](std::int64_t count) {
             if (count > 0) text.add(name, "true");
           },
           help)
        ->group(std::string(option.group));
    return;
  }
  const auto take = [&text, name](const std::vector<std::string>& values) {
    for (const std::string& value : values) text.add(name, value);
  };
  CLI::Option* const added =
      option.several
          ? app.add_option_function<std::vector<std::string>>(flag, take, help)->allow_extra_args(false)
          : app.add_option_function<std::string>(
                flag, [&text, name](const std::string& value) { text.add(name, value); }, help);
  added->type_name(std::string(option.value))->group(std::string(option.group));
  if (!option.by_default.empty()) added->default_str(std::string(option.by_default));
}

void add_running(CLI::App& app, Arguments& arguments, Given& given) {
  const char* group = "Running";
  app.add_option("--jobs", arguments.options.jobs, "Worker threads")
      ->check(CLI::Range(1U, 1024U))
      ->default_str("one per core")
      ->group(group);
  given.rank =
      app.add_option("--rank", arguments.options.rank, "The rank of this process, 0 to world size - 1")
          ->default_str("from mpirun, srun, torchrun or a job array");
  given.world = app.add_option("--world-size", arguments.options.world_size, R"(
      Number of processes that share the work on one OUT. --rank 0 --world-size 1 does everything in this process)")
                    ->default_str("from the launcher, or 1");
  given.rank->group(group)->needs(given.world);
  given.world->group(group);
  app.add_flag("--claim", arguments.options.claim, R"(
      Share the work with any number of processes that run the same command. Each takes the next free shard. They may be
      started and killed at any time. Each ends when the data set is complete)")
      ->group(group)
      ->excludes(given.rank)
      ->excludes(given.world);
  CLI::Option* const follow = app.add_flag("--follow", arguments.follow, R"(
      Convert images that still come into the folder IMAGES: whole shards are appended to OUT, which is a data set
      from the first one on. Ends with --until, or with Ctrl-C without the images of a shard that is not full)");
  follow->group(group)->excludes(given.rank)->excludes(given.world)->excludes("--claim");
  app.add_option("--until", arguments.until, R"(
      With --follow: when this file exists, convert what is there and end)")
      ->type_name("FILE")
      ->needs(follow)
      ->group(group);
  app.add_flag("--dry-run", arguments.dry_run, R"(
      Print the plan, the sizes and an estimate of the time, and write nothing)")
      ->group(group);
  app.add_flag("--json", arguments.json, "Print the summary as JSON on standard output")->group(group);
  app.add_flag("--quiet", arguments.quiet, "Print neither progress nor summary")->group(group);
  cli::add_config_file(app);
  app.get_config_ptr()->group(group);
}

}  // namespace

std::optional<int> parse(int argc, const char* const* argv, Arguments& arguments) {
  convert::Options& options = arguments.options;
  Given given;
  CLI::App app(R"(
      Convert a folder of images into shards: decoded, resized and normalised once, and stored in safetensors
      files that training maps. An interrupted conversion continues with the same command.)",
               "shardify");
  app.set_version_flag("--version", std::string(SHARD_VERSION_STRING) +
                                        "\nimages: " + image::decodable_formats() + " (" +
                                        image::decoder_versions() + ")\nservers: " + remote_library());
  app.add_option("IMAGES", options.images, R"(
      A folder with one subfolder per class (IMAGES/<class>/...), or without (every label is 0). Or a tar archive with
      the same inside, a WebDataset, or several ('train-{000..146}.tar'); an array of images (.npy, .npz, IDX); @FILE, a
      text file with one path per line; or -, the same list on standard input. Archives and the files of a list can be
      on servers (https://, s3://))")
      ->required();
  app.add_option("OUT", options.out,
                 "The folder of the data set: new, empty, or of an earlier run. Or s3://BUCKET/PREFIX")
      ->required();
  for (const convert::TextOption& option : convert::text_options()) add_text_option(app, option, given.text);
  add_running(app, arguments, given);
  std::vector<std::string> shown{"--jobs", "--claim",    "--dry-run", "--config",
                                 "--help", "--help-all", "--version", "--completion"};
  for (const convert::TextOption& option : convert::text_options())
    if (option.common) shown.emplace_back(option.flag);
  cli::show_in_help(app, std::move(shown));
  app.footer(R"(
      Exit codes:
      - 0: every image is stored.
      - 1: finished, but some images were rejected; OUT/rejects.csv lists path and reason.
      - 2: nothing was published, or the usage was wrong. The message says what to do.
      - 3: this process has finished its part of --world-size, and others are still working. With --claim: other
        processes hold the last shards, and nothing has happened for 30 minutes.
      - 130: interrupted. The same command continues.

      The documentation is docs/shardify.md.)");

  if (auto code = cli::parse_arguments(app, argc, argv)) return code;
  convert::apply(given.text, options);
  if (arguments.options.claim)
    arguments.rank_source = "--claim";
  else if (given.rank->count() == 0)
    ask_launcher(given.world->count() == 0 ? std::nullopt : std::optional(options.world_size), arguments);
  else
    arguments.rank_source = "--rank, --world-size";
  if (arguments.follow && arguments.dry_run)
    throw Error(ErrorCode::invalid_argument, "--follow and --dry-run exclude each other");
  if (arguments.follow) arguments.options.rank = 0, arguments.options.world_size = 1;
  options.check();
  return std::nullopt;
}

}  // namespace shard::shardify
