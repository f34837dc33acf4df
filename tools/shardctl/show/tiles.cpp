#include "shardctl/show/tiles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "shard/error.hpp"
#include "shardctl/dataset/labels.hpp"
#include "shardctl/dataset/sizes.hpp"
#include "shardctl/draw/picture.hpp"

namespace shard::ctl {
namespace {

constexpr std::uint32_t kMostViews = 64;

// The first `characters` code points; if there are more, the last of them is a tilde.
std::string cut_to(std::string text, std::uint32_t characters) {
  std::size_t count = 0;
  std::size_t last = 0;  // where the last code point that fits begins
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) == 0x80U) continue;
    if (count == characters) return text.substr(0, last) + (characters == 0 ? "" : "~");
    last = i;
    ++count;
  }
  return text;
}

std::size_t code_points(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace

Tiles::Tiles(const Source& source, std::vector<std::uint64_t> indices, TileOptions options)
    : source_(&source),
      indices_(std::move(indices)),
      options_(std::move(options)),
      denormalizer_(source.info().spec, source.info().normalization) {
  for (const std::uint64_t index : indices_) source.locate(index);
  if (options_.targets) overlay_.emplace(source.info());
  further_ = static_cast<std::uint32_t>(overlay_ ? overlay_->pictures().size() : 0);
  if (options_.augment.empty()) return;
  if (options_.views < 1 || options_.views > kMostViews)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--views {}: give a number from 1 to {}", options_.views, kMostViews));
  augmented_.emplace(source.info(), options_.augment, options_.seed);
  views_ = options_.views;
}

image::Size Tiles::size_of(image::Size picture) const {
  const SampleSpec& all = source_->info().spec;
  if (options_.most_side) return picture_size(picture, *options_.most_side);
  return picture == image::Size{all.width, all.height} ? picture : picture_size(picture, kMostPictureSide);
}

image::Size Tiles::cell() const {
  const SampleSpec& all = source_->info().spec;
  image::Size cell{};
  const auto include = [&](const SampleSpec& spec) {
    const image::Size tile = size_of({spec.width, spec.height});
    cell = {std::max(cell.width, tile.width), std::max(cell.height, tile.height)};
  };
  if (!all.is_free()) include(all);
  for (const std::uint64_t index : indices_) {
    if (all.is_free()) include(source_->spec_of(index));
    for (std::uint32_t k = 0; k < further_; ++k) include(overlay_->picture_spec(*source_, index, k));
  }
  return cell;
}

std::string Tiles::caption(std::uint64_t index, std::uint32_t characters) const {
  const Source::Sample sample = source_->locate(index);
  std::string text = fmt::format("#{} {}", index, label_name(*source_, sample.reader, sample.index));
  if (source_->info().spec.is_free()) {
    const std::string sized = text + " " + size_text(source_->spec_of(index));
    if (code_points(sized) <= characters) return sized;
  }
  return cut_to(std::move(text), characters);
}

void Tiles::draw(std::uint32_t characters, Damage& damage, const Draw& draw) const {
  const SampleSpec& spec = source_->info().spec;
  PictureShrinker shrinker(options_.most_side.value_or(kMostPictureSide));
  Picture picture;
  std::vector<std::byte> sample;
  const auto put = [&](std::uint64_t tile, const std::string& text) {
    const bool as_it_is =
        size_of({picture.width, picture.height}) == image::Size{picture.width, picture.height};
    draw(tile, as_it_is ? picture.view() : shrinker.shrink(picture), text);
  };
  // Lines are as thick as is needed to be seen after the picture is made smaller.
  const auto scale = [&](const Picture& of) {
    const image::Size small = size_of({of.width, of.height});
    return (std::max(of.width, of.height) + std::max(small.width, small.height) - 1) /
           std::max(small.width, small.height);
  };
  for (std::size_t i = 0; i < indices_.size(); ++i) {
    const std::uint64_t first = i * each();
    const bool whole = damage.survives(indices_[i], [&] {
      picture.resize(source_->read(indices_[i], sample));
      denormalizer_.rgb(sample, picture.rgb);
      if (overlay_) overlay_->draw(overlay_->read(*source_, indices_[i]), picture.canvas(), scale(picture));
      put(first, caption(indices_[i], characters));
      for (std::uint32_t k = 0; k < further_; ++k) {
        overlay_->draw_picture(*source_, indices_[i], k, picture);
        put(first + 1 + k, cut_to(overlay_->pictures()[k], characters));
      }
    });
    if (!whole) continue;
    for (std::uint32_t view = 0; view < views_; ++view) {
      picture.resize(spec);
      picture.rgb = augmented_->picture(*source_, indices_[i], view);
      if (overlay_)
        overlay_->draw(augmented_->targets(*overlay_, *source_, indices_[i], view), picture.canvas(),
                       scale(picture));
      put(first + 1 + further_ + view, cut_to(fmt::format("epoch {}", view), characters));
    }
  }
}

}  // namespace shard::ctl
