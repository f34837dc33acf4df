// show: samples back as a picture, in a file or in the terminal, a caption under each.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>

#include <memory>
#include "base/text/number.hpp"
#include "base/text/quote.hpp"
#include "cli/output.hpp"
#include "cli/text.hpp"
#include "shard/error.hpp"
#include "shard/image/preprocess.hpp"
#include "shardctl/commands.hpp"
#include "shardctl/dataset/damage.hpp"
#include "shardctl/dataset/source.hpp"
#include "shardctl/show/sheet.hpp"
#include "shardctl/show/terminal_sheet.hpp"
#include "shardctl/show/tiles.hpp"
#include "shardctl/subcommand.hpp"

namespace shard::ctl {
namespace {

constexpr std::uint64_t kDefaultCount = 12;

// splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
std::uint64_t next_random(std::uint64_t& state) {
  state += 0x9E3779B97F4A7C15U;
  std::uint64_t z = state;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

// `count` distinct numbers below `size`, ascending (Floyd's algorithm: Bentley, Programming Pearls, 1987).
std::vector<std::uint64_t> draw(std::uint64_t count, std::uint64_t size, std::uint64_t seed) {
  std::set<std::uint64_t> drawn;
  for (std::uint64_t last = size - count; last < size; ++last) {
    const std::uint64_t candidate = next_random(seed) % (last + 1);
    drawn.insert(drawn.contains(candidate) ? last : candidate);
  }
  return {drawn.begin(), drawn.end()};
}

std::uint64_t parse_index(std::string_view digits, const std::string& whole) {
  const auto value = number_of<std::uint64_t>(digits);
  if (!value)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format(
            "{} is not a selection of samples: give indices such as 7, or ranges such as 0..16 (0 to 15)",
            quoted(whole)));
  return *value;
}

// Indices and half-open ranges. Each is checked against the number of samples before it is written out.
std::vector<std::uint64_t> parse_samples(const std::vector<std::string>& texts, const Source& source) {
  std::vector<std::uint64_t> indices;
  for (const std::string& text : texts) {
    const std::size_t dots = text.find("..");
    if (dots == std::string::npos) {
      indices.push_back(parse_index(text, text));
      continue;
    }
    const std::uint64_t begin = parse_index(std::string_view(text).substr(0, dots), text);
    const std::uint64_t end = parse_index(std::string_view(text).substr(dots + 2), text);
    if (begin >= end) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("the range {} is empty: {}..{} are the samples from {} up to, but not including, {}",
                      quoted(text), begin, end, begin, end));
    }
    if (end > source.size()) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the range {} ends beyond the last sample: there are {}, numbered from 0",
                              quoted(text), source.size()));
    }
    if (end - begin > kMaxSheetPixels) too_many_samples(end - begin);
    for (std::uint64_t index = begin; index < end; ++index) indices.push_back(index);
  }
  return indices;
}

std::vector<std::uint64_t> chosen_samples(const ShowOptions& options, const Source& source) {
  if (!options.samples.empty() && options.count != 0)
    throw Error(ErrorCode::invalid_argument, "give either indices or --count, not both");
  if (!options.samples.empty()) return parse_samples(options.samples, source);
  const std::uint64_t count = options.count != 0 ? options.count : kDefaultCount;
  return draw(std::min(count, source.size()), source.size(), options.seed);
}

// None: what the terminal is found to know.
std::optional<Graphics> asked_graphics(const std::string& name) {
  if (name == "kitty") return Graphics::kitty;
  if (name == "sixel") return Graphics::sixel;
  if (name == "blocks") return Graphics::blocks;
  return std::nullopt;
}

int show_in_file(const ShowOptions& options, const Source& source, const TileOptions& how) {
  const Tiles tiles(source, chosen_samples(options, source), how);
  Sheet sheet(tiles.cell(), tiles.count(),
              options.columns != 0 || tiles.each() == 1 ? options.columns : tiles.each());
  Damage damage;
  tiles.draw(sheet.characters(), damage,
             [&](std::uint64_t tile, const image::RgbView& picture, const std::string& caption) {
               sheet.put(tile, picture, caption);
             });
  if (damage.found()) {
    damage.report("no picture was written (--no-verify shows damaged samples too)");
    return kExitDifferent;
  }
  const image::RgbView view = sheet.view();
  const auto png = image::encode_png(view);
  publish_file(options.output, {reinterpret_cast<const char*>(png.data()), png.size()});
  cli::out("{}: {}, {}x{} pixels\n", path_text(options.output), cli::counted(tiles.samples(), "sample"),
           view.width, view.height);
  return kExitOk;
}

int show_in_terminal(const ShowOptions& options, const Source& source, TileOptions how) {
  std::vector<std::uint64_t> samples = chosen_samples(options, source);
  const Terminal terminal = find_terminal(asked_graphics(options.graphics));
  const Tiles unbounded(source, samples, how);
  TerminalSheet sheet(terminal, unbounded.count(), unbounded.each(), options.columns);
  how.most_side = sheet.most_side();
  const Tiles tiles(source, std::move(samples), how);
  sheet.start(tiles.cell());
  Damage damage;
  tiles.draw(sheet.characters(), damage,
             [&](std::uint64_t tile, const image::RgbView& picture, const std::string& caption) {
               sheet.put(tile, picture, caption, cli::write_out);
             });
  sheet.finish(cli::write_out);
  if (!damage.found()) return kExitOk;
  cli::flush_out();
  damage.report("they are left out (--no-verify shows damaged samples too)");
  return kExitDifferent;
}

void check_output(const ShowOptions& options) {
  if (options.output.empty()) {
    if (options.graphics == "auto" && !writes_to_terminal())
      throw Error(
          ErrorCode::invalid_argument,
          "standard output is not a terminal that shows pictures: name a file with --output FILE.png, "
          "or what to write with --graphics kitty, sixel or blocks");
    return;
  }
  std::string extension = std::filesystem::path(options.output).extension().string();
  for (char& c : extension) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (extension == ".png") return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("--output {}: the picture is a PNG; give a name that ends in .png",
                          quoted(options.output)));
}

}  // namespace

int show(const ShowOptions& options) {
  check_output(options);
  const Source source = Source::open(options.path, options.verify ? Check::digests : Check::none);
  TileOptions how;
  how.augment = options.augment;
  how.views = options.views;
  how.seed = options.seed;
  how.targets = options.targets;
  return options.output.empty() ? show_in_terminal(options, source, how) : show_in_file(options, source, how);
}

void add_show(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<ShowOptions>();
  CLI::App* const command = app.add_subcommand("show", R"(
      Draw samples with their labels in the terminal, or as a PNG picture)");
  add_path(command, options->path);
  command->add_option("SAMPLES", options->samples, R"(
      Indices as ls prints them, or ranges: 0..16 means 0 to 15. By default 12 random ones)");
  CLI::Option* const output = command->add_option("-o,--output", options->output, R"(
      The picture to write. By default samples are shown in the terminal)");
  output->type_name("FILE.png");
  command
      ->add_option("--graphics", options->graphics, R"(
      How the terminal draws: kitty, sixel, or blocks (half a character is a pixel); auto asks it)")
      ->check(CLI::IsMember({"auto", "kitty", "sixel", "blocks"}))
      ->type_name("NAME")
      ->excludes(output)
      ->capture_default_str();
  command
      ->add_option("--augment", options->augment, R"(
      Beside each sample, what a loader makes of it: random-resized-crop, flip and this
      policy, rand-augment[:COUNT,MAGNITUDE], trivial-augment,
      auto-augment[:imagenet|cifar10|svhn], aug-mix, 3-augment, simclr or crop;
      or one operation alone, such as solarize or affine (docs/shardctl.md))")
      ->type_name("POLICY");
  command->add_option("--views", options->views, "With --augment: how many, in epochs from 0 on")
      ->capture_default_str();
  command->add_flag("!--no-targets", options->targets, R"(
      Do not draw masks, boxes and keypoints over the samples, nor further images beside them)");
  command->add_option("--count", options->count, "Draw N random samples instead of SAMPLES");
  command->add_option("--seed", options->seed, "Seed of the random samples")->capture_default_str();
  command
      ->add_option("--columns", options->columns, R"(
      Tiles per row; 0 makes a picture about square, and fills the lines of a terminal)")
      ->check(CLI::Range(0U, 65535U))
      ->capture_default_str();
  add_verify(command, options->verify);
  runs(command, chosen, [options] { return show(*options); });
}

}  // namespace shard::ctl
