#include "shardify/arguments.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <string>
#include <vector>

#include "common/cli.hpp"
#include "common/format.hpp"
#include "convert/launcher.hpp"
#include "shard/error.hpp"

namespace shard::shardify {

namespace {

constexpr Normalization kImagenet{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
constexpr Normalization kClip{{0.48145466F, 0.4578275F, 0.40821073F},
                              {0.26862954F, 0.26130258F, 0.27577711F}};
constexpr Normalization kHalf{{0.5F, 0.5F, 0.5F}, {0.5F, 0.5F, 0.5F}};

// The options as they were typed; empty: not given.
struct Text {
  std::string preset = "eval", resize, crop, squash, filter, dtype, layout, mean, std, normalize, codec,
              shard_size, on_error = "skip";
};

[[noreturn]] void refuse(const char* option, const std::string& value, const std::string& expected) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{} '{}': {}", option, value, expected));
}

std::uint32_t parse_side(const char* option, const std::string& text) {
  std::uint32_t value = 0;
  const char* end = text.data() + text.size();
  auto [last, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || last != end || value < 1 || value > 65535)
    refuse(option, text, "expected a size of 1 to 65535");
  return value;
}

image::Size parse_extent(const char* option, const std::string& text) {
  const auto x = text.find('x');
  if (x == std::string::npos) refuse(option, text, "expected WIDTHxHEIGHT");
  return {parse_side(option, text.substr(0, x)), parse_side(option, text.substr(x + 1))};
}

std::array<float, 3> parse_channels(const char* option, const std::string& text) {
  std::array<float, 3> values{};
  const char* at = text.data();
  const char* end = text.data() + text.size();
  for (std::size_t c = 0; c < 3; ++c) {
    auto [last, error] = std::from_chars(at, end, values[c]);
    if (error != std::errc{} || (c < 2 ? last == end || *last != ',' : last != end))
      refuse(option, text, "expected three numbers: RED,GREEN,BLUE");
    at = last + 1;
  }
  return values;
}

Normalization parse_normalize(const std::string& text) {
  if (text == "imagenet") return kImagenet;
  if (text == "clip") return kClip;
  if (text == "half") return kHalf;
  if (text == "none") return {};
  refuse("--normalize", text, "expected imagenet, clip, half or none");
}

void apply_preset(const std::string& preset, image::PreprocessOptions& p) {
  p.normalization = kImagenet;
  if (preset == "eval") return;  // PreprocessOptions' defaults
  if (preset != "train") refuse("--preset", preset, "expected eval or train");
  p.resize_short = 256;
  p.crop = image::Size{256, 256};
  p.dtype = DType::u8;
  p.layout = Layout::nhwc;
}

template <class T, class Parse>
void set_if_given(T& target, const char* option, const std::string& text, Parse parse, const char* expected) {
  if (text.empty()) return;
  auto value = parse(text);
  if (!value) refuse(option, text, expected);
  target = *value;
}

// Puts the option's name before the message of a parser that does not know it.
template <class Parse>
auto named(const char* option, Parse parse) {
  try {
    return parse();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", option, error.what()));
  }
}

void apply(const Text& text, convert::Options& options) {
  image::PreprocessOptions& p = options.preprocess;
  apply_preset(text.preset, p);
  if (!text.resize.empty()) p.resize_short = parse_side("--resize", text.resize);
  if (!text.squash.empty()) {
    if (!text.resize.empty())
      throw Error(ErrorCode::invalid_argument,
                  "--squash and --resize exclude each other: squash sets both sides");
    p.squash = parse_extent("--squash", text.squash);
    p.crop.reset();
  }
  if (text.crop == "none") {
    p.crop.reset();
  } else if (!text.crop.empty()) {
    const bool both = text.crop.find('x') != std::string::npos;
    const std::uint32_t side = both ? 0 : parse_side("--crop", text.crop);
    p.crop = both ? parse_extent("--crop", text.crop) : image::Size{side, side};
  }
  set_if_given(p.filter, "--filter", text.filter, image::filter_from_string,
               "expected bilinear, bicubic, lanczos or box");
  set_if_given(p.dtype, "--dtype", text.dtype, dtype_from_string, "expected u8, f16, bf16 or f32");
  if (p.dtype != DType::u8 && p.dtype != DType::f16 && p.dtype != DType::bf16 && p.dtype != DType::f32)
    refuse("--dtype", text.dtype, "expected u8, f16, bf16 or f32");
  set_if_given(p.layout, "--layout", text.layout, layout_from_string, "expected nchw or nhwc");
  if (!text.normalize.empty()) p.normalization = parse_normalize(text.normalize);
  if (!text.mean.empty()) p.normalization.mean = parse_channels("--mean", text.mean);
  if (!text.std.empty()) p.normalization.std = parse_channels("--std", text.std);
  if (!text.codec.empty()) options.codec = named("--codec", [&] { return codec_from_string(text.codec); });
  if (!text.shard_size.empty())
    options.shard_size_bytes = named("--shard-size", [&] { return cli::parse_size(text.shard_size); });
  if (text.on_error != "skip" && text.on_error != "fail")
    refuse("--on-error", text.on_error, "expected skip or fail");
  options.on_error = text.on_error == "fail" ? convert::OnError::fail : convert::OnError::skip;
}

}  // namespace

std::optional<int> parse(int argc, const char* const* argv, Arguments& arguments) {
  convert::Options& options = arguments.options;
  Text text;
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
  app.add_option("--root", options.root,
                 "lists: keys and classes are relative to it (default: deepest common folder)")
      ->group(input);
  app.add_option("--on-error", text.on_error,
                 "skip: bad images go to rejects.csv; fail: stop at the first (default skip)")
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
  app.add_option("--dtype", text.dtype, "u8, f16, bf16 or f32")->group(values);
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
      app.add_option("--shard-size", text.shard_size, "bytes of samples a shard (default 256MiB)")
          ->group(output);
  app.add_option("--samples-per-shard", options.samples_per_shard, "instead of --shard-size")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{100'000'000}))
      ->group(output)
      ->excludes(shard_size);
  app.add_flag("--overwrite", options.overwrite, "replace the data set or unfinished conversion in OUT")
      ->group(output);

  const char* running = "Running";
  app.add_option("--jobs", options.jobs, "worker threads (default: one a core)")
      ->check(CLI::Range(1U, 1024U))
      ->group(running);
  auto* rank = app.add_option("--rank", options.rank,
                              "this process of --world (default: from mpirun, srun or torchrun)");
  auto* world = app.add_option("--world", options.world, "processes that share the work on one OUT");
  rank->group(running)->needs(world);
  world->group(running)->needs(rank);
  app.add_flag("--dry-run", arguments.dry_run, "print the plan, sizes and an estimate; write nothing")
      ->group(running);
  app.add_flag("--json", arguments.json, "machine-readable summary on standard output")->group(running);
  app.add_flag("--quiet", arguments.quiet, "no progress, no summary")->group(running);
  app.set_config("--config", "", "read options from a file: lines of NAME=VALUE")->group(running);
  app.allow_config_extras(false);  // a misspelt name is an error, not an option that has no effect
  app.footer(
      "Exit codes: 0 all images stored; 1 finished, some rejected (see OUT/rejects.csv);\n"
      "2 nothing published or bad usage; 130 interrupted (the same command goes on).");

  if (auto code = cli::parse_arguments(app, argc, argv)) return code;
  apply(text, options);
  if (rank->count() == 0) {
    if (auto placement = convert::placement_from_environment()) {
      options.rank = placement->rank;
      options.world = placement->world;
    }
  }
  options.check();
  return std::nullopt;
}

}  // namespace shard::shardify
