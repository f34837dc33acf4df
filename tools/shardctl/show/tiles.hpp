// The pictures that `show` draws of each sample: the sample with its targets, its further images, and what a
// loader makes of it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "shard/image/preprocess.hpp"
#include "shardctl/dataset/damage.hpp"
#include "shardctl/dataset/source.hpp"
#include "shardctl/draw/augmented.hpp"
#include "shardctl/draw/overlay.hpp"
#include "shardctl/draw/pixels.hpp"

namespace shard::ctl {

struct TileOptions {
  std::string augment;      // a policy of parse_policy(); empty: none
  std::uint32_t views = 4;  // of `augment`, 1 to 64
  std::uint64_t seed = 0;   // of `augment`
  bool targets = true;
  // The longer side of a tile in pixels. By default samples of one size are drawn as they are, and others
  // have at most kMostPictureSide.
  std::optional<std::uint32_t> most_side;
};

// Borrows the source. Use one per thread.
class Tiles {
 public:
  // Errors: those of Source::locate() for each index, of Denormalizer, and of Augmented; invalid_argument for
  // `views`.
  Tiles(const Source& source, std::vector<std::uint64_t> indices, TileOptions options);

  std::uint64_t samples() const noexcept { return indices_.size(); }
  // Tiles of a sample: itself, its further images, its views.
  std::uint32_t each() const noexcept { return 1 + further_ + views_; }
  std::uint64_t count() const noexcept { return indices_.size() * each(); }
  // At least as high and as wide as every tile.
  image::Size cell() const;

  // Called for tile 0, 1, ... in turn; the picture, u8 RGB, is valid during the call. The caption is UTF-8 of
  // at most `characters` code points.
  using Draw =
      std::function<void(std::uint64_t tile, const image::RgbView& picture, const std::string& caption)>;
  // The tiles of damaged samples are left out and noted.
  void draw(std::uint32_t characters, Damage& damage, const Draw& draw) const;

 private:
  image::Size size_of(image::Size picture) const;
  std::string caption(std::uint64_t index, std::uint32_t characters) const;

  const Source* source_;
  std::vector<std::uint64_t> indices_;
  TileOptions options_;
  Denormalizer denormalizer_;
  std::optional<Overlay> overlay_;
  std::optional<Augmented> augmented_;
  std::uint32_t further_ = 0;
  std::uint32_t views_ = 0;
};

}  // namespace shard::ctl
