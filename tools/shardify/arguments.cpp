#include "shardify/arguments.hpp"

#include <fmt/format.h>

#include <string>

#include "cli/cli.hpp"
#include "cli/config_file.hpp"
#include "cli/text.hpp"
#include "convert/rank.hpp"
#include "convert/text_options.hpp"
#include "shard/error.hpp"

namespace shard::shardify {

namespace {

// Puts the option's name before the message of a parser that does not know it.
std::uint64_t parse_shard_size(const std::string& text) {
  try {
    return cli::parse_size(text);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("--shard-size: {}", error.what()));
  }
}

// Rank and world size of the launcher. `world`: --world, when given.
void place(std::optional<std::uint32_t> world, Arguments& arguments) {
  if (world == 0U) throw Error(ErrorCode::invalid_argument, "--world 0: expected 1 or more");
  if (const auto placement = convert::placement_from_environment(world)) {
    arguments.options.rank = placement->rank;
    arguments.options.world = placement->world;
    arguments.placement = placement->source + "; --rank 0 --world 1 does all the work in one process";
    arguments.wait_for_others = placement->all_or_none;
  } else if (world) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format(
            "--world {} without --rank: no launcher says which of them this process is; give --rank 0 "
            "to {}, one each",
            *world, *world - 1));
  }
}

}  // namespace

std::optional<int> parse(int argc, const char* const* argv, Arguments& arguments) {
  convert::Options& options = arguments.options;
  convert::TextOptions text;
  std::string shard_size_text;
  CLI::App app(
      "Decodes, resizes and normalises images once, into shards: safetensors files that training maps as "
      "they are.\n"
      "The same command again finishes what was interrupted.",
      "shardify");
  app.set_version_flag("--version", SHARD_VERSION);
  app.add_option("IMAGES", options.images,
                 "folder with a subfolder a class (IMAGES/<class>/**), or without subfolders (label 0);\n"
                 "@FILE: a list of paths, one a line; -: such a list on standard input")
      ->required();
  app.add_option("OUT", options.out, "folder for the data set: new, empty, or of an earlier run")->required();

  const char* input = "Input";
  app.add_option("--labels", options.labels, "CSV: path,label or path,v1,...,vk; paths relative to IMAGES")
      ->group(input);
  app.add_option("--unlisted", text.unlisted,
                 "images that --labels does not name: reject, or skip to convert a subset (default reject)")
      ->group(input);
  app.add_option("--root", options.root,
                 "lists: keys and classes are relative to it; required unless all paths lie in one folder,\n"
                 "or all in folders of one folder (default: that folder)")
      ->group(input);
  app.add_flag("--strict", options.strict,
               "hidden names, litter of systems and files that are no images are rejects, not passed over")
      ->group(input);
  app.add_option("--on-error", text.on_error,
                 "skip: bad images go to rejects.csv; fail: stop at the first (default skip)")
      ->group(input);
  app.add_option(
         "--on-warning", text.on_warning,
         "JPEGs that the decoder warns of. harmless: stored where the pixels are complete; accept: all are\n"
         "stored, what is missing becomes gray; reject: none is (default harmless)")
      ->group(input);
  app.add_option("--max-pixels", options.max_pixels, "refuse larger images from their header")
      ->capture_default_str()
      ->group(input);

  const char* pixels = "Pixels";
  app.add_option("--preset", text.preset,
                 "eval: short side 256, centre crop 224, f16 NCHW, normalised;\n"
                 "train: short side 256, centre crop 256, u8 NHWC, normalised after loading (default eval)")
      ->group(pixels);
  app.add_option("--resize", text.resize, "short side after resizing")->group(pixels);
  app.add_option("--crop", text.crop, "centre crop: N, WxH, or none (with --squash)")->group(pixels);
  app.add_option("--squash", text.squash, "resize to exactly WxH, whatever the aspect; no crop unless --crop")
      ->group(pixels);
  app.add_option("--filter", text.filter, "bilinear, bicubic, lanczos or box, as Pillow's (default bilinear)")
      ->group(pixels);
  app.add_flag(
         "--fast-decode", options.fast_decode,
         "decode JPEGs at a reduced size that still covers the target: faster, not the same pixels; recorded")
      ->group(pixels);

  const char* values = "Values";
  app.add_option("--dtype", text.dtype, "u8, f16, bf16 or f32 (also uint8, float16, bfloat16, float32)")
      ->group(values);
  app.add_option("--layout", text.layout, "nchw or nhwc")->group(values);
  app.add_option("--normalize", text.normalize,
                 "imagenet, clip, half (mean and std 0.5) or none (0 to 1); floats are stored normalised,\n"
                 "for u8 it is recorded (default imagenet)")
      ->group(values);
  app.add_option("--mean", text.mean, "RED,GREEN,BLUE in units of 0 to 1, instead of --normalize's")
      ->group(values);
  app.add_option("--std", text.std, "RED,GREEN,BLUE, likewise")->group(values);

  const char* output = "Output";
  app.add_option("--codec", text.codec,
                 "none, packed (lossless, about half the bytes on photographs), or zstd[:1..19]\n"
                 "(default none; zstd: level 3)")
      ->group(output);
  auto* shard_size =
      app.add_option("--shard-size", shard_size_text, "bytes of samples a shard (default 1GiB)")
          ->group(output);
  app.add_option("--samples-per-shard", options.samples_per_shard, "instead of --shard-size")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{100'000'000}))
      ->group(output)
      ->excludes(shard_size);
  auto* overwrite = app.add_flag("--overwrite", options.overwrite,
                                 "convert everything again; what is in OUT stays until the new data set is "
                                 "complete")
                        ->group(output);
  app.add_flag("--refresh", options.refresh,
               "compare all inputs with those that OUT was made of, convert the shards again whose inputs\n"
               "changed, and keep the others")
      ->group(output)
      ->excludes(overwrite);

  const char* running = "Running";
  app.add_option("--jobs", options.jobs, "worker threads (default: one a core)")
      ->check(CLI::Range(1U, 1024U))
      ->group(running);
  auto* rank =
      app.add_option("--rank", options.rank,
                     "this process of --world (default: from mpirun, srun, torchrun or a job array)");
  auto* world =
      app.add_option("--world", options.world,
                     "processes that share the work on one OUT (with a rank from JOB_COMPLETION_INDEX\n"
                     "or PMIX_RANK, or with --rank; --rank 0 --world 1: all of it in this process)");
  rank->group(running)->needs(world);
  world->group(running);
  app.add_flag("--dry-run", arguments.dry_run, "print the plan, sizes and an estimate; write nothing")
      ->group(running);
  app.add_flag("--json", arguments.json, "machine-readable summary on standard output")->group(running);
  app.add_flag("--quiet", arguments.quiet, "no progress, no summary")->group(running);
  cli::add_config_file(app);
  app.get_config_ptr()->group(running);
  app.footer(
      "Exit codes: 0 all images stored; 1 finished, some rejected (see OUT/rejects.csv);\n"
      "2 failed: the message says whether anything is left to do; 3 this process is done, others of\n"
      "--world are still at work; 130 interrupted (the same command goes on).");

  if (auto code = cli::parse_arguments(app, argc, argv)) return code;
  convert::apply(text, options);
  if (!shard_size_text.empty()) options.shard_size_bytes = parse_shard_size(shard_size_text);
  if (rank->count() == 0)
    place(world->count() == 0 ? std::nullopt : std::optional(options.world), arguments);
  else
    arguments.placement = "--rank, --world";
  options.check();
  return std::nullopt;
}

}  // namespace shard::shardify
