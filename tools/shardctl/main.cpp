// shardctl: look at, check, compare, export and repack what shardify converted.
#include <fmt/format.h>
#include <sys/resource.h>

#include <functional>
#include <string>

#include "cli/cli.hpp"
#include "cli/flags.hpp"
#include "cli/output.hpp"
#include "cli/run_main.hpp"
#include "shard/error.hpp"
#include "shard/remote.hpp"
#include "shard/version.hpp"
#include "shardctl/commands.hpp"
#include "shardctl/duplicates/near_groups.hpp"

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

void add_path(CLI::App* command, std::string& path,
              const char* help = "The folder of a data set, its part FOLDER#NAME, or a shard") {
  command->add_option("PATH", path, help)->required();
}
void add_jobs(CLI::App* command, unsigned& jobs) {
  command->add_option("-j,--jobs", jobs, "Threads; 0 means one per core")
      ->check(CLI::Range(0U, kMaxJobs))
      ->capture_default_str();
}
void add_quiet(CLI::App* command, bool& quiet, const char* help = "Print no progress") {
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

// What is damaged so much that it cannot even be opened is damage too, and not a failure of the program.
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

int export_as(const ExportOptions& options, bool npy_given) {
  if (npy_given && options.format != "npy")
    throw Error(ErrorCode::invalid_argument, "--npy is another word for --format npy: give one of them");
  if (options.format == "parquet")
    throw Error(ErrorCode::unsupported,
                fmt::format("shardctl writes no Parquet: pip install 'shardloader[parquet]', then run python "
                            "-m shardloader export "
                            "{} --parquet {}",
                            options.path, options.folder.empty() ? "FILE.parquet" : options.folder));
  if (options.folder.empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("export needs --output PATH{}", options.format == "npy" ? " or --npy DIR" : ""));
  return options.format == "tar" ? export_tar(options) : export_npy(options);
}

int run(int argc, char** argv) {
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
      - 1: samples or shards are damaged, compare found differences, or duplicates found any.
      - 2: something cannot be read or written, the data set is incomplete, or the usage was wrong.

      The documentation is docs/shardctl.md.)");

  InfoOptions info_options;
  CLI::App* info_command = app.add_subcommand("info", R"(
      Describe a data set or shard, and list its tensors with their offsets)");
  add_path(info_command, info_options.path, "The folder of a data set, a shard, or any safetensors file");
  add_json(info_command, info_options.json);

  LsOptions ls_options;
  CLI::App* ls_command = app.add_subcommand("ls", R"(
      Print index, label, class and key of every sample

      For a safetensors file that is not a shard, print its tensors.)");
  add_path(ls_command, ls_options.path);
  CLI::Option* csv = ls_command->add_flag("--csv", ls_options.csv, "Print CSV: index,label,class,key");
  ls_command->add_flag("--json", ls_options.json, "Print JSON: a list with one line per sample")
      ->excludes(csv);
  ls_command->add_flag("--columns", ls_options.columns,
                       "With --csv or --json: also print the columns beside the labels");

  VerifyOptions verify_options;
  CLI::App* verify_command = app.add_subcommand("verify", R"(
      Check every rule of the format and every digest

      Prints one line per problem, with shard, sample and key, and then the totals.)");
  add_path(verify_command, verify_options.path);
  add_jobs(verify_command, verify_options.jobs);
  add_quiet(verify_command, verify_options.quiet, "Print problems only");
  add_json(verify_command, verify_options.json);

  ShowOptions show_options;
  CLI::App* show_command = app.add_subcommand("show", "Draw samples with their labels as a PNG picture");
  add_path(show_command, show_options.path);
  show_command->add_option("SAMPLES", show_options.samples, R"(
      Indices as ls prints them, or ranges: 0..16 means 0 to 15)");
  show_command->add_option("-o,--output", show_options.output, "The picture to write")
      ->type_name("FILE.png")
      ->required();
  show_command
      ->add_option("--augment", show_options.augment, R"(
      Beside each sample, what a loader makes of it: random-resized-crop, flip and this
      policy, rand-augment[:COUNT,MAGNITUDE], trivial-augment,
      auto-augment[:imagenet|cifar10|svhn], aug-mix, 3-augment, simclr or crop;
      or one operation alone, such as solarize or affine (docs/shardctl.md))")
      ->type_name("POLICY");
  show_command->add_option("--views", show_options.views, "With --augment: how many, in epochs from 0 on")
      ->capture_default_str();
  show_command->add_flag("!--no-targets", show_options.targets, R"(
      Do not draw masks, boxes and keypoints over the samples, nor further images beside them)");
  show_command->add_option("--count", show_options.count, "Draw N random samples instead of SAMPLES");
  show_command->add_option("--seed", show_options.seed, "Seed of the random samples")->capture_default_str();
  show_command
      ->add_option("--columns", show_options.columns, "Tiles per row; 0 makes the picture about square")
      ->check(CLI::Range(0U, 65535U))
      ->capture_default_str();
  add_verify(show_command, show_options.verify);

  CompareOptions compare_options;
  CLI::App* compare_command = app.add_subcommand("compare", R"(
      Decode the images again and report how the stored samples differ)");
  add_path(compare_command, compare_options.path);
  compare_command
      ->add_option("IMAGES", compare_options.images,
                   "The folder, archives or arrays of images from which it was made; or another data set")
      ->required();
  compare_command
      ->add_option("--samples", compare_options.samples, R"(
      Compare only N samples, evenly spread; 0 means all)")
      ->capture_default_str();
  compare_command
      ->add_option("--mask-dir", compare_options.mask_dir,
                   "Also compare the field mask with the masks in this folder")
      ->type_name("DIR");
  compare_command
      ->add_option("--pair", compare_options.pairs, R"(
      Also compare the field NAME with the files in a folder; may be given several times)")
      ->type_name("NAME=DIR")
      ->allow_extra_args(false);
  compare_command
      ->add_option("--array-layout", compare_options.array_layout, R"(
      For arrays of images: nhwc or nchw, where the shape does not say it)")
      ->check(CLI::IsMember({"nhwc", "nchw"}))
      ->type_name("nhwc|nchw");
  add_max_pixels(compare_command, compare_options.max_pixels);
  add_jobs(compare_command, compare_options.jobs);
  add_quiet(compare_command, compare_options.quiet);
  add_json(compare_command, compare_options.json);

  DuplicatesOptions duplicates_options;
  CLI::App* duplicates_command = app.add_subcommand("duplicates", R"(
      List samples that are stored more than once, in a data set and across data sets

      Samples of the same group have the same pixels, whatever their codec. Exit code 1: there are some.)");
  duplicates_command
      ->add_option("PATHS", duplicates_options.paths,
                   "Folders of data sets, their parts FOLDER#NAME, or shards")
      ->required();
  duplicates_command
      ->add_option("--near", duplicates_options.near, R"(
      List samples that look alike: perceptual hashes of 64 bits that differ in at most N. 4 finds the same picture in
      another size or quality, 8 also slightly cropped ones; more finds pictures that only resemble each other.)")
      ->check(CLI::Range(0U, kMaxHashDistance));
  duplicates_command->add_flag("--across", duplicates_options.across,
                               "List only groups with samples of more than one data set");
  duplicates_command->add_flag("!--no-verify", duplicates_options.verify,
                               "Trust equal digests, do not compare the bytes of the samples");
  duplicates_command
      ->add_option("--csv", duplicates_options.csv, "Also write all groups to this file, as CSV")
      ->type_name("FILE");
  add_jobs(duplicates_command, duplicates_options.jobs);
  add_quiet(duplicates_command, duplicates_options.quiet);
  add_json(duplicates_command, duplicates_options.json);

  ExportOptions export_options;
  CLI::App* export_command =
      app.add_subcommand("export", "Write the samples as .npy files or as a WebDataset");
  add_path(export_command, export_options.path);
  export_command
      ->add_option("--npy", export_options.folder, R"(
      The folder to write, new or empty: images.npy (bfloat16 becomes float32), labels.npy, keys.txt, classes.txt)")
      ->type_name("DIR");
  export_command
      ->add_option("--format", export_options.format, R"(
      npy: as --npy; tar: a WebDataset, with KEY.png (or KEY.npy), KEY.cls and KEY.json for each sample, which shardify
      reads again; parquet: says which Python command writes it)")
      ->check(CLI::IsMember({"npy", "tar", "parquet"}))
      ->capture_default_str()
      ->type_name("npy|tar|parquet");
  export_command->add_option("-o,--output", export_options.folder, "The folder or, of tar, the file to write")
      ->type_name("PATH");
  add_verify(export_command, export_options.verify);
  add_quiet(export_command, export_options.quiet, "Print nothing");

  PageOptions page_options;
  CLI::App* page_command = app.add_subcommand("page", R"(
      Write an HTML page that shows a data set

      It needs no network: open DIR/index.html in a browser, or copy the folder to a web server.)");
  add_path(page_command, page_options.path);
  page_command->add_option("DIR", page_options.folder, "The folder to write: new or empty")->required();
  page_command
      ->add_option("--samples", page_options.samples, R"(
      Random samples of each class; fewer if there would be more than 4000 pictures)")
      ->check(CLI::Range(1U, 1000U))
      ->capture_default_str();
  page_command->add_option("--seed", page_options.seed, "Seed of the random samples")->capture_default_str();
  page_command->add_flag("--duplicates", page_options.duplicates, "Also find and show equal samples");
  page_command
      ->add_option("--augment", page_options.augment, R"(
      Also show what training makes of some samples: a policy of show --augment)")
      ->type_name("POLICY");
  page_command->add_flag("!--no-targets", page_options.targets, R"(
      Do not draw masks, boxes and keypoints over the samples)");
  page_command->add_flag("--overwrite", page_options.overwrite, "Replace a page that is in DIR");
  add_jobs(page_command, page_options.jobs);
  add_quiet(page_command, page_options.quiet, "Print nothing");

  RepackOptions repack_options;
  CLI::App* repack_command = app.add_subcommand("repack", R"(
      Write a data set with another codec, without decoding images again

      The checksums of the samples stay the same. A stopped repack continues with the same command.)");
  add_path(repack_command, repack_options.path, "The folder of a data set");
  repack_command
      ->add_option("NEW", repack_options.folder, "The folder to write: new, empty, or of a stopped repack")
      ->required();
  repack_command->add_option("--codec", repack_options.codec, "none, packed, or zstd[:1..19]")
      ->type_name("CODEC")
      ->required();
  add_jobs(repack_command, repack_options.jobs);
  add_quiet(repack_command, repack_options.quiet, "Print nothing");

  SplitOptions split_options;
  CLI::App* split_command = app.add_subcommand("split", R"(
      Divide a data set into named parts, for instance to train and to validate

      A part is a small file, NAME.selection, in the folder of the data set. PATH#NAME is a data set for every program. The part of a
      sample is decided by the hash of its key, so more data do not change it.)");
  add_path(split_command, split_options.path, "The folder of a data set");
  split_command->add_option("--fractions", split_options.fractions, "The size of each part; they add up to 1")
      ->type_name("F,F,...")
      ->delimiter(',')
      ->required();
  split_command
      ->add_option("--names", split_options.names,
                   "A name for each part; two are train,val and three train,val,test without it")
      ->type_name("NAME,NAME,...")
      ->delimiter(',');
  split_command->add_option("--seed", split_options.seed, "Another seed, another split")
      ->capture_default_str();
  add_quiet(split_command, split_options.quiet, "Print nothing");
  add_json(split_command, split_options.json);

  JoinCommandOptions join_options;
  CLI::App* join_command = app.add_subcommand("join", R"(
      Put the shards of several data sets together to one data set, by hard link

      Nothing is decoded or compressed again. Shards get other labels where classes need it; these are copied. A
      stopped join continues with the same command.)");
  join_command
      ->add_option("NEW", join_options.folder, "The folder to write: new, empty, or of a stopped join")
      ->required();
  join_command->add_option("PATHS", join_options.paths, "Folders of data sets, two or more")
      ->required()
      ->expected(2, -1);
  join_command->add_flag("--copy", join_options.copy, "Copy all shards instead of making hard links");
  add_quiet(join_command, join_options.quiet, "Print nothing");

  CopyOptions copy_options;
  CLI::App* copy_command = app.add_subcommand("copy", R"(
      Copy a whole data set to a folder, or from a folder to an object store

      What is there is proven by its digests and not moved again, so a stopped copy goes on with the same command. Another data set is never
      overwritten.)");
  copy_command
      ->add_option("SRC", copy_options.from,
                   "The folder of a data set, or its address: https://, s3://, hf://")
      ->required();
  copy_command
      ->add_option("DST", copy_options.to,
                   "The folder to write, or s3://BUCKET/PREFIX: new, empty, or of a stopped copy")
      ->required();
  add_quiet(copy_command, copy_options.quiet, "Print nothing");
  add_json(copy_command, copy_options.json);

  StatsOptions stats_options;
  CLI::App* stats_command = app.add_subcommand("stats", R"(
      Print mean and standard deviation of each channel, and the size with codec packed

      The numbers are in the form that --mean and --std of shardify take.)");
  add_path(stats_command, stats_options.path, R"(
      The folder of a data set, a shard, or images: a folder, @FILE or - (a list of paths). Images are resized to 256
      and cropped to 224)");
  add_verify(stats_command, stats_options.verify);
  add_max_pixels(stats_command, stats_options.max_pixels);
  add_jobs(stats_command, stats_options.jobs);
  add_quiet(stats_command, stats_options.quiet);
  add_json(stats_command, stats_options.json);

  CacheOptions cache_options;
  CLI::App* cache_command = app.add_subcommand("cache", R"(
      List the shards that loaders keep of data sets on servers, and verify or remove them

      A loader uses a shard of its cache if it was proven by its digests since the system was started, and proves it again otherwise. Files of
      others are listed as foreign and never removed.)");
  cache_command->add_option("DIR", cache_options.folder, "The folder that loaders were given as their cache")
      ->required();
  CLI::Option* verify_cache =
      cache_command->add_flag("--verify", cache_options.verify, "Compare every shard with its digests");
  cache_command
      ->add_flag("--remove-damaged", cache_options.remove_damaged, "Remove what --verify finds damaged")
      ->needs(verify_cache);
  cache_command->add_flag("--remove", cache_options.remove, R"(
      Remove all shards, and what was left unfinished. Loaders that read them at this moment fail)");
  add_json(cache_command, cache_options.json);

  if (const auto code = cli::parse_arguments(app, argc, argv)) return *code;
  raise_descriptor_limit();
  if (info_command->parsed()) return info(info_options);
  if (verify_command->parsed()) return verify(verify_options);
  return reading([&] {
    if (ls_command->parsed()) return ls(ls_options);
    if (show_command->parsed()) return show(show_options);
    if (compare_command->parsed()) return compare(compare_options);
    if (duplicates_command->parsed()) return duplicates(duplicates_options);
    if (export_command->parsed()) return export_as(export_options, export_command->count("--npy") != 0);
    if (page_command->parsed()) return page(page_options);
    if (repack_command->parsed()) return repack(repack_options);
    if (split_command->parsed()) return split(split_options);
    if (join_command->parsed()) return join(join_options);
    if (copy_command->parsed()) return copy(copy_options);
    if (cache_command->parsed()) return cache(cache_options);
    return stats(stats_options);
  });
}

}  // namespace
}  // namespace shard::ctl

int main(int argc, char** argv) {
  return shard::cli::run_main("shardctl", [&] { return shard::ctl::run(argc, argv); });
}
