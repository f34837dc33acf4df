#include "shardify/arguments.hpp"

#include <fmt/format.h>

#include <string>

#include "cli/cli.hpp"
#include "cli/config_file.hpp"
#include "cli/text.hpp"
#include "convert/plan/rank.hpp"
#include "convert/plan/text_options.hpp"
#include "shard/error.hpp"
#include "shard/image/decode.hpp"
#include "shard/remote.hpp"
#include "shard/version.hpp"

namespace shard::shardify {

namespace {

// Puts the option's name before the message of the parser, which does not know it.
std::uint64_t parse_shard_size(const std::string& text) {
  try {
    return cli::parse_size(text);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("--shard-size: {}", error.what()));
  }
}

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
  std::string shard_size;
  CLI::Option* rank = nullptr;
  CLI::Option* world = nullptr;
};

constexpr const char* kInput = "Input";

void add_labels(CLI::App& app, convert::Options& options, Given& given) {
  const char* group = kInput;
  app.add_option("--labels", options.labels, R"(
      Take the labels from a CSV table with lines path,label or path,v1,...,vk. The paths are relative to IMAGES.
      For arrays also an array of labels (.npy, IDX), in the order in which IMAGES gives its arrays.
      Without a table, the class is the first folder of the path)")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--classes", given.text.classes, R"(
      The names of the labels 0, 1, ...: a text file with one name a line, or another data set, OUT/train. With it a label means the same
      in both, also if these images have only some of its classes. An image of another class ends the run. Without it, the classes are
      those that the images have, sorted)")
      ->type_name("FILE|SET")
      ->group(group);
  app.add_option("--column", given.text.columns, R"(
      Store a column of the table of --labels with each sample; may be given several times. The first line of the
      table names its columns: path, the others, and "label" if the classes are not the folders. TYPE is text, a
      dtype, or a dtype with a shape: f32[3] for three numbers, separated by spaces; i64[] for any number of numbers;
      f32[,4] for any number of rows of four. Without --labels: from the members of a WebDataset, 0001.NAME or NAME
      in 0001.json)")
      ->type_name("NAME:TYPE")
      ->allow_extra_args(false)
      ->group(group);
}

void add_annotations(CLI::App& app, convert::Options& options, Given& given) {
  const char* group = kInput;
  app.add_option("--coco", options.coco, R"(
      Annotations in the format of COCO: their boxes, keypoints and captions are stored as columns, in pixels of the
      stored sample)")
      ->type_name("FILE.json")
      ->group(group);
  app.add_option("--yolo", options.yolo, R"(
      A folder with the boxes of each image in the format of YOLO: the same path with the extension .txt, lines "class cx cy w h"
      with fractions of the image. They are stored as the columns of --coco)")
      ->type_name("DIR")
      ->group(group);
  app.add_option("--yolo-keypoints", options.yolo_keypoints, R"(
      The lines of --yolo have N keypoints behind the box: x y, or x y visibility)")
      ->type_name("N")
      ->group(group);
  app.add_option("--voc", options.voc, R"(
      A folder with the boxes of each image in the format of Pascal VOC: the same path with the extension .xml)")
      ->type_name("DIR")
      ->group(group);
  app.add_option("--box-classes", options.box_classes, R"(
      The names of the classes of --yolo or --voc, one a line. An image with another class is rejected. Without it: classes.txt in the
      folder of --yolo, if it is there; all names that occur in --voc)")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--mask-dir", given.text.mask_dir, R"(
      A folder with a mask for each image: the same path, with the extension of a PNG or TIFF file. The index in its palette, or its gray
      value, is the class. Masks are resized with nearest and cropped as the images, and stored as the field "mask")")
      ->type_name("DIR")
      ->group(group);
  app.add_option("--mask-suffix", given.text.mask_suffix, R"(
      The names of the masks end in this before the extension: _mask for 0001_mask.png of 0001.jpg)")
      ->type_name("TEXT")
      ->group(group);
  app.add_option("--mask-classes", given.text.mask_classes, R"(
      The masks have the classes 0 to N - 1. An image whose mask has another value is rejected)")
      ->type_name("N")
      ->group(group);
  app.add_option("--mask-ignore", given.text.mask_ignore, R"(
      A further value that masks may have, for pixels without a class: 255 for Pascal VOC)")
      ->type_name("VALUE")
      ->group(group);
  app.add_option("--pair", given.text.pairs, R"(
      A folder with a second image for each image: the same path, also with another extension. It is stored as the field NAME; may be
      given several times. Settings behind DIR: dtype=u16 (without it, that of the first file), filter=nearest (without it,
      bilinear), codec=zstd:3, size=any (files of other sizes than their images), suffix=TEXT, role=mask, classes=N, ignore=VALUE)")
      ->type_name("NAME=DIR[,KEY=VALUE...]")
      ->allow_extra_args(false)
      ->group(group);
}

void add_choice_of_images(CLI::App& app, convert::Options& options, Given& given) {
  const char* group = kInput;
  app.add_option("--missing", given.text.missing, R"(
      What to do with images that have no annotation, mask or pair: store them without objects, and with zeros in place of the mask or pair; or
      skip them. fail: stop, also at annotations without an image, of unknown categories or with boxes without area)")
      ->type_name("empty|skip|fail")
      ->default_str("empty")
      ->group(group);
  app.add_option("--unlisted", given.text.unlisted, R"(
      What to do with images that --labels does not name: reject them, or skip them to convert a subset)")
      ->type_name("reject|skip")
      ->default_str("reject")
      ->group(group);
  app.add_option("--array-layout", given.text.array_layout, R"(
      The axes of arrays of images: nhwc (images, rows, columns, channels) or nchw. Only where the shape does not say it)")
      ->type_name("nhwc|nchw")
      ->group(group);
  app.add_option("--root", options.root, R"(
      For lists: keys and classes are relative to this folder. It can be left out if all paths are in one folder,
      or all in subfolders of one folder)")
      ->type_name("DIR")
      ->group(group);
  app.add_flag("--strict", options.strict, R"(
      Report hidden files, system files and files that are not images as rejects, instead of skipping them)")
      ->group(group);
  app.add_option("--on-error", given.text.on_error, R"(
      skip: list bad images in OUT/rejects.csv and continue; fail: stop at the first one)")
      ->type_name("skip|fail")
      ->default_str("skip")
      ->group(group);
  app.add_option("--on-warning", given.text.on_warning, R"(
      Which JPEGs with decoder warnings are stored. harmless: those with complete pixels; accept: all, with gray
      for missing pixels; reject: none)")
      ->type_name("harmless|accept|reject")
      ->default_str("harmless")
      ->group(group);
  app.add_flag("--pages", options.pages, R"(
      Each page of a TIFF file is a sample, with the key FILE#PAGE (from 0 on), instead of the first page alone)")
      ->group(group);
  app.add_option("--max-pixels", options.max_pixels, "Reject larger images before they are decoded")
      ->capture_default_str()
      ->group(group);
}

void add_pixels(CLI::App& app, convert::Options& options, Given& given) {
  const char* group = "Pixels";
  app.add_option("--preset", given.text.preset, R"(
      eval: short side 256, centre crop 224, f16, NCHW, normalised. train: short side 256, centre crop 256, u8,
      NHWC; the loader crops and normalises. Other options override the preset)")
      ->type_name("eval|train")
      ->default_str("eval")
      ->group(group);
  app.add_option("--resize", given.text.resize, "Length of the short side after resizing")
      ->type_name("N")
      ->default_str("256")
      ->group(group);
  app.add_option("--crop", given.text.crop, "Centre crop; none needs --squash")
      ->type_name("N|WxH|none")
      ->default_str("by preset")
      ->group(group);
  app.add_option("--squash", given.text.squash, R"(
      Resize to exactly this size, and ignore the aspect ratio. Nothing is cropped unless --crop is given)")
      ->type_name("WxH")
      ->group(group);
  app.add_option("--filter", given.text.filter,
                 "bilinear, bicubic, lanczos, box or nearest, with Pillow's results")
      ->type_name("NAME")
      ->default_str("bilinear")
      ->group(group);
  app.add_flag("--fast-decode", options.fast_decode, R"(
      Decode JPEGs at a reduced size that still covers the target. Faster, but the pixels differ; the data set
      records it)")
      ->group(group);
}

void add_values(CLI::App& app, convert::Options& options, Given& given) {
  const char* group = "Values";
  app.add_option("--dtype", given.text.dtype, R"(
      Data type of the stored values: u8, u16, f16, bf16 or f32 (also uint8, uint16, ...). u16 keeps all 16 bits of PNG, TIFF
      and arrays; images of 8 bits become value x 257)")
      ->type_name("DTYPE")
      ->default_str("by preset")
      ->group(group);
  app.add_option("--channels", given.text.channels, R"(
      keep: the samples have the channels, and without --dtype the data type, of the first image, which all others must have
      too. N: so many channels. Without it, images become RGB of 8 bits, except for --dtype u16 and for images that RGB cannot
      hold (floats, more than four bands), which are kept)")
      ->type_name("keep|N")
      ->default_str("RGB")
      ->group(group);
  app.add_option("--depth", options.depth, R"(
      Images of 16 bits have numbers of N bits, 9 to 16, as those of many sensors: as RGB of 8 bits they keep the highest 8 of these. An
      image with a larger number is rejected)")
      ->type_name("N")
      ->check(CLI::Range(9U, 16U))
      ->default_str("16")
      ->group(group);
  app.add_option("--layout", given.text.layout, "Order of the axes: nchw or nhwc")
      ->type_name("LAYOUT")
      ->default_str("by preset")
      ->group(group);
  app.add_option("--normalize", given.text.normalize, R"(
      Mean and standard deviation: imagenet, clip, half (both 0.5) or none (values from 0 to 1). Floats are stored
      normalised. For u8 the numbers are only recorded, and the loader applies them)")
      ->type_name("NAME")
      ->default_str("imagenet")
      ->group(group);
  app.add_option("--mean", given.text.mean, R"(
      The mean of each channel, in units of 0 to 1, instead of that of --normalize. Not for images of floats, which are kept)")
      ->type_name("R,G,B,...")
      ->group(group);
  app.add_option("--std", given.text.std, "The standard deviation, likewise")
      ->type_name("R,G,B,...")
      ->group(group);
}

void add_output(CLI::App& app, convert::Options& options, Given& given) {
  const char* group = "Output";
  app.add_option("--codec", given.text.codec, R"(
      How samples are stored, without loss: none, packed (about half the bytes on photographs), or zstd:LEVEL with
      a level of 1 to 19 (zstd alone: 3))")
      ->type_name("CODEC")
      ->default_str("none")
      ->group(group);
  auto* shard_size =
      app.add_option("--shard-size", given.shard_size, "Bytes of samples per shard, before the codec")
          ->type_name("BYTES")
          ->default_str("1GiB")
          ->group(group);
  app.add_option("--samples-per-shard", options.samples_per_shard, "The same as a number of samples")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{100'000'000}))
      ->group(group)
      ->excludes(shard_size);
  auto* overwrite = app.add_flag("--overwrite", options.overwrite, R"(
      Convert everything again. The old data set stays until the new one is complete)")
                        ->group(group);
  auto* refresh = app.add_flag("--refresh", options.refresh, R"(
      Compare all inputs with those of the existing data set, and convert only the shards whose inputs changed)")
                      ->group(group)
                      ->excludes(overwrite);
  app.add_flag("--append", options.append, R"(
      Add the images to the finished data set OUT, as further shards. All other options must be as recorded there)")
      ->group(group)
      ->excludes(overwrite)
      ->excludes(refresh);
}

void add_work(CLI::App& app, convert::Options& options) {
  app.add_option("--work", options.work, R"(
      For OUT in an object store: the folder for shards until they are uploaded, four at most. The same command with the same DIR
      continues)")
      ->type_name("DIR")
      ->default_str("in TMPDIR, or /tmp")
      ->group("Output");
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
  given.world = app.add_option("--world-size,--world", arguments.options.world_size, R"(
      Number of processes that share the work on one OUT. --rank 0 --world-size 1 does everything in this process)")
                    ->default_str("from the launcher, or 1");
  given.rank->group(group)->needs(given.world);
  given.world->group(group);
  app.add_flag("--claim", arguments.options.claim, R"(
      Share the work with any number of processes that run the same command: each takes the next free shard. They may
      be started and killed at any time. Each ends when the data set is complete)")
      ->group(group)
      ->excludes(given.rank)
      ->excludes(given.world);
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
      A folder with one subfolder per class (IMAGES/<class>/...), or without subfolders (every label is 0); a tar archive
      with the same inside, a WebDataset, or several ('train-{000..146}.tar'); an array of images (.npy, .npz, IDX); @FILE, a text file with one path per line;
      or -, the same list on standard input. Archives and the files of a list can be on servers (https://, s3://))")
      ->required();
  app.add_option(
         "OUT", options.out,
         "The folder of the data set: new, empty, or the result of an earlier run; or s3://BUCKET/PREFIX")
      ->required();
  add_labels(app, options, given);
  add_annotations(app, options, given);
  add_choice_of_images(app, options, given);
  add_pixels(app, options, given);
  add_values(app, options, given);
  add_output(app, options, given);
  add_work(app, options);
  add_running(app, arguments, given);
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
  if (!given.shard_size.empty()) options.shard_size_bytes = parse_shard_size(given.shard_size);
  if (arguments.options.claim)
    arguments.rank_source = "--claim";
  else if (given.rank->count() == 0)
    ask_launcher(given.world->count() == 0 ? std::nullopt : std::optional(options.world_size), arguments);
  else
    arguments.rank_source = "--rank, --world-size";
  options.check();
  return std::nullopt;
}

}  // namespace shard::shardify
