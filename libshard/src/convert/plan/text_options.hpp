// The options of a conversion that people write as text: on a command line, in a file, in Python.
#pragma once

#include <string>
#include <vector>

#include "shard/convert/options.hpp"

namespace shard::convert {

// Mean and standard deviation of ImageNet: `normalize` imagenet, and both presets.
inline const Normalization kImagenet{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};

// The values of shardify's options of the same names (docs/shardify.md). Empty: not given.
struct TextOptions {
  std::string preset = "eval", resize, crop, squash, filter, dtype, layout, mean, std, normalize, codec,
              on_error = "skip", on_warning = "harmless", unlisted = "reject", missing = "empty",
              array_layout, channels;
  // "caption:text", "angle:f32", "pose:f32[7]"; ragged: "ids:i64[]", "boxes:f32[,4]".
  std::vector<std::string> columns;
  // A file of class names, or a data set (read_class_names()).
  std::string classes;
  // A folder of masks, as the pair "mask"; numbers.
  std::string mask_dir, mask_suffix, mask_classes, mask_ignore;
  // "NAME=DIR", with any of ",suffix=S", ",role=mask", ",classes=N", ",ignore=N", ",dtype=D", ",filter=F",
  // ",codec=C" and ",size=any" behind it.
  std::vector<std::string> pairs;
};

// Sets the members of `options` that these values stand for: the preset first, then what is given besides.
// Throws invalid_argument, naming the option (`crop`), the value and what is expected.
void apply(const TextOptions& text, Options& options);

}  // namespace shard::convert
