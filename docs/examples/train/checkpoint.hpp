// Checkpoint: all that a run needs to go on where it stopped, in one file that is replaced atomically.
//
//   shard-train 1                        text lines:
//   <settings>                             what must be the same in the run that goes on
//   shard-loader 4 <numbers and views>     LoaderState: which batch comes next
//   <loss> <correct> <samples>             of the epoch so far; doubles, as hexadecimal bits
//   <count>                                of the floats that follow, little-endian
//   <floats> <16 hexadecimal digits>     weights and velocities; XXH3 of everything before
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "backend.hpp"
#include "shard/loader/order.hpp"

namespace train {

struct Checkpoint {
  std::string settings;  // one line
  shard::LoaderState loader;
  Totals totals;
  std::vector<float> values;
};

// Errors: io.
void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint);

// Errors: corrupt (not a checkpoint, cut, changed), invalid_argument (of a run with other settings), io.
Checkpoint load_checkpoint(const std::filesystem::path& path, const std::string& settings);

}  // namespace train
