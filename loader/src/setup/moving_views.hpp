// Whether what a loader does to its samples moves their pixels, so that places in them (boxes, keypoints,
// masks) must move too.
#pragma once

#include <optional>
#include <string>

#include "shard/loader/loader.hpp"

namespace shard {

// The first thing that moves pixels, for messages: "view 0 is cropped to 224 x 224". Empty: nothing does, and
// a place in the stored sample is the same place in every view.
std::optional<std::string> what_moves(const DatasetInfo& info, const LoaderOptions& options);

}  // namespace shard
