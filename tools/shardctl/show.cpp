// show: samples back as a picture, a caption under each.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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
#include "shardctl/dataset/labels.hpp"
#include "shardctl/dataset/sizes.hpp"
#include "shardctl/dataset/source.hpp"
#include "shardctl/draw/augmented.hpp"
#include "shardctl/draw/font.hpp"
#include "shardctl/draw/overlay.hpp"
#include "shardctl/draw/picture.hpp"
#include "shardctl/draw/pixels.hpp"
#include "shardctl/subcommand.hpp"

namespace shard::ctl {
namespace {

constexpr std::uint32_t kGap = 4;  // white pixels around tiles and captions
constexpr std::uint64_t kMaxSheetPixels = 178'956'970;
constexpr std::uint32_t kMostViews = 64;

[[noreturn]] void too_many_samples(std::uint64_t count) {
  throw Error(ErrorCode::resource, fmt::format("a sheet of {} would have more than {} pixels: show fewer",
                                               cli::counted(count, "sample"), kMaxSheetPixels));
}

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

// Where the tiles of a sheet lie.
struct Sheet {
  std::uint32_t columns = 0;
  std::uint32_t rows = 0;
  std::uint32_t cell_width = 0;
  std::uint32_t cell_height = 0;
  std::uint32_t picture_height = 0;  // of a cell, above its caption
  std::uint32_t text_scale = 1;
  std::uint32_t width() const { return columns * cell_width + kGap; }
  std::uint32_t height() const { return rows * cell_height + kGap; }
};

// `cell`: of the largest tile.
Sheet lay_out(image::Size cell, std::uint64_t count, std::uint32_t asked_columns) {
  const auto columns = asked_columns != 0
                           ? std::min<std::uint64_t>(asked_columns, count)
                           : static_cast<std::uint64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  const std::uint64_t rows = (count + columns - 1) / columns;
  Sheet sheet;
  sheet.picture_height = cell.height;
  sheet.text_scale = cell.width >= 320 ? 2 : 1;
  sheet.cell_width = std::max(cell.width, 8 * kGlyphWidth) + kGap;
  sheet.cell_height = cell.height + kGap + kGlyphHeight * sheet.text_scale + kGap;
  const std::uint64_t width = columns * sheet.cell_width + kGap;
  const std::uint64_t height = rows * sheet.cell_height + kGap;
  if (width > kMaxSheetPixels || height > kMaxSheetPixels || width * height > kMaxSheetPixels)
    too_many_samples(count);
  sheet.columns = static_cast<std::uint32_t>(columns);
  sheet.rows = static_cast<std::uint32_t>(rows);
  return sheet;
}

std::string caption(const Source& source, std::uint64_t index, std::uint32_t characters) {
  const Source::Sample sample = source.locate(index);
  std::string text = fmt::format("#{} {}", index, label_name(source, sample.reader, sample.index));
  if (source.info().spec.is_free()) {
    const std::string sized = text + " " + size_text(source.spec_of(index));
    if (sized.size() <= characters) return sized;
  }
  if (text.size() > characters) text = text.substr(0, characters - 1) + "~";
  return text;
}

// Samples of one size are drawn as they are. Where each has its own, large ones are made smaller.
bool is_drawn_as_it_is(const SampleSpec& all, image::Size size) {
  return size == image::Size{all.width, all.height};
}

// Of the largest tile of these samples.
image::Size cell_size(const Source& source, const std::vector<std::uint64_t>& indices,
                      const std::optional<Overlay>& overlay) {
  const SampleSpec& all = source.info().spec;
  image::Size cell{all.width, all.height};
  const auto include = [&](const SampleSpec& spec) {
    const image::Size size{spec.width, spec.height};
    const image::Size tile = is_drawn_as_it_is(all, size) ? size : picture_size(size);
    cell = {std::max(cell.width, tile.width), std::max(cell.height, tile.height)};
  };
  for (const std::uint64_t index : indices) {
    if (all.is_free()) include(source.spec_of(index));
    for (std::size_t k = 0; overlay && k < overlay->pictures().size(); ++k)
      include(overlay->picture_spec(source, index, k));
  }
  return cell;
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

void check_output_name(const std::string& output) {
  std::string extension = std::filesystem::path(output).extension().string();
  for (char& c : extension) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (extension == ".png") return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("--output {}: the picture is a PNG; give a name that ends in .png", quoted(output)));
}

}  // namespace

int show(const ShowOptions& options) {
  check_output_name(options.output);
  const Source source = Source::open(options.path, options.verify ? Check::digests : Check::none);
  if (options.samples.empty() && options.count == 0) {
    throw Error(ErrorCode::invalid_argument,
                "name the samples to show by their index, or --count N for random ones");
  }
  if (!options.samples.empty() && options.count != 0) {
    throw Error(ErrorCode::invalid_argument, "give either indices or --count, not both");
  }
  const std::vector<std::uint64_t> indices =
      options.samples.empty() ? draw(std::min(options.count, source.size()), source.size(), options.seed)
                              : parse_samples(options.samples, source);
  for (const std::uint64_t index : indices) source.locate(index);  // before anything is allocated
  Damage damage;

  const SampleSpec& spec = source.info().spec;
  const Denormalizer denormalizer(spec, source.info().normalization);
  std::optional<Augmented> augmented;
  if (!options.augment.empty()) {
    if (options.views < 1 || options.views > kMostViews)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("--views {}: give a number from 1 to {}", options.views, kMostViews));
    augmented.emplace(source.info(), options.augment, options.seed);
  }
  const std::optional<Overlay> overlay =
      options.targets ? std::optional<Overlay>(source.info()) : std::nullopt;
  const auto further = static_cast<std::uint32_t>(overlay ? overlay->pictures().size() : 0);
  const std::uint32_t views = augmented ? options.views : 0;
  const std::uint32_t each = 1 + further + views;  // tiles of a sample
  const Sheet sheet = lay_out(cell_size(source, indices, overlay), indices.size() * each,
                              options.columns != 0 || each == 1 ? options.columns : each);
  std::vector<std::uint8_t> pixels(std::size_t{sheet.width()} * sheet.height() * 3, 255);
  const Canvas canvas{pixels, sheet.width(), sheet.height()};
  std::vector<std::byte> sample;
  Picture picture;
  PictureShrinker shrinker;
  const auto draw_tile = [&](std::size_t i, const std::string& text) {
    const auto left = static_cast<std::uint32_t>(kGap + i % sheet.columns * sheet.cell_width);
    const auto top = static_cast<std::uint32_t>(kGap + i / sheet.columns * sheet.cell_height);
    const bool as_it_is = is_drawn_as_it_is(spec, {picture.width, picture.height});
    const image::RgbView tile = as_it_is ? picture.view() : shrinker.shrink(picture);
    for (std::uint32_t y = 0; y < tile.height; ++y) {
      std::copy_n(
          tile.data + y * tile.stride_bytes, std::size_t{tile.width} * 3,
          pixels.begin() + static_cast<std::ptrdiff_t>(((std::size_t{top} + y) * sheet.width() + left) * 3));
    }
    draw_text(canvas, left, top + sheet.picture_height + kGap, sheet.text_scale, text);
  };
  const std::uint32_t characters = (sheet.cell_width - kGap) / (kGlyphWidth * sheet.text_scale);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const bool whole = damage.survives(indices[i], [&] {
      picture.resize(source.read(indices[i], sample));
      denormalizer.rgb(sample, picture.rgb);
      const std::uint32_t scale = spec.is_free() ? line_scale({picture.width, picture.height}) : 1;
      if (overlay) overlay->draw(overlay->read(source, indices[i]), picture.canvas(), scale);
      draw_tile(i * each, caption(source, indices[i], characters));
      for (std::uint32_t k = 0; k < further; ++k) {
        overlay->draw_picture(source, indices[i], k, picture);
        draw_tile(i * each + 1 + k, overlay->pictures()[k].substr(0, characters));
      }
    });
    if (!whole) continue;
    for (std::uint32_t view = 0; view < views; ++view) {
      picture.resize(spec);
      picture.rgb = augmented->picture(source, indices[i], view);
      if (overlay) overlay->draw(augmented->targets(*overlay, source, indices[i], view), picture.canvas());
      draw_tile(i * each + 1 + further + view, fmt::format("epoch {}", view));
    }
  }
  if (damage.found()) {
    damage.report("no picture was written (--no-verify shows damaged samples too)");
    return kExitDifferent;
  }
  const auto png =
      image::encode_png({pixels.data(), sheet.width(), sheet.height(), std::size_t{sheet.width()} * 3});
  publish_file(options.output, {reinterpret_cast<const char*>(png.data()), png.size()});
  cli::out("{}: {}, {}x{} pixels\n", path_text(options.output), cli::counted(indices.size(), "sample"),
           sheet.width(), sheet.height());
  return kExitOk;
}

void add_show(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<ShowOptions>();
  CLI::App* const command = app.add_subcommand("show", "Draw samples with their labels as a PNG picture");
  add_path(command, options->path);
  command->add_option("SAMPLES", options->samples, R"(
      Indices as ls prints them, or ranges: 0..16 means 0 to 15)");
  command->add_option("-o,--output", options->output, "The picture to write")
      ->type_name("FILE.png")
      ->required();
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
  command->add_option("--columns", options->columns, "Tiles per row; 0 makes the picture about square")
      ->check(CLI::Range(0U, 65535U))
      ->capture_default_str();
  add_verify(command, options->verify);
  runs(command, chosen, [options] { return show(*options); });
}

}  // namespace shard::ctl
