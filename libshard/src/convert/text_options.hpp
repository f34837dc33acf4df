// The options of a conversion that people write as text: on a command line, in a file, in Python.
#pragma once

#include <string>

#include "shard/convert/options.hpp"

namespace shard::convert {

// As shardify's options of the same names take them (README.md); empty: not given.
struct TextOptions {
  std::string preset = "eval", resize, crop, squash, filter, dtype, layout, mean, std, normalize, codec,
              on_error = "skip", on_warning = "harmless", unlisted = "reject";
};

// Sets what they say in `options`, the preset first. Throws invalid_argument naming the option ("--crop") and
// what it expects.
void apply(const TextOptions& text, Options& options);

}  // namespace shard::convert
