// Photos and a data set made of them, small, to run shardbench on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "commands/convert/convert_bench.hpp"
#include "data/synth.hpp"
#include "shard/convert/convert.hpp"

namespace shard::testing {

inline void make_photos(const std::filesystem::path& folder, std::uint64_t count, std::uint64_t seed = 0) {
  bench::SynthOptions options;
  options.folder = folder;
  options.count = count;
  options.classes = 2;
  options.seed = seed;
  bench::synthesize(options, {});
}

// uint8 48x48 [row, column, channel], or of any size.
inline void make_dataset(const std::filesystem::path& photos, const std::filesystem::path& out,
                         const std::string& codec = "none", bool any_size = false) {
  convert::Options options = bench::preset_options("train");
  options.images = photos.string();
  options.out = out;
  options.preprocess.resize_short = 64;
  options.preprocess.crop = image::Size{48, 48};
  if (any_size) options.preprocess.free_size = image::FreeSize{};
  options.codec = codec_spec_from_string(codec);
  if (!convert::run(options, {}).complete) throw std::runtime_error("the photos were not converted");
}

}  // namespace shard::testing
