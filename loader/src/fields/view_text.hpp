// Views as text, for LoaderState: the options of each view and of its operations, as words between spaces.
//
//   1 2 3 224 224 0.08 1 0.75 1.3333333333333333 0.5 - + 0 - 1 solarize 128 0.2 0 0 0 ...
//   | | crop, rows, columns, scale, ratio, flip, dtype, layout, normalization,
//   | | operations: their number, name, members
//   | views
//   version
//
// Numbers are the shortest decimal ones that give the same value again, so equal texts mean equal views.
// A text of another version is refused: a change of the members of TransformOptions or of an operation
// needs a new version.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shard/loader/transform.hpp"

namespace shard {

std::string views_to_text(const std::vector<TransformOptions>& views);

// What views_to_text() wrote. The views are not checked: plan_views() does that.
// Errors: invalid_argument, naming the word that is wrong.
std::vector<TransformOptions> views_from_text(std::string_view text);

}  // namespace shard
