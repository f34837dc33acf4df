// Operations of augmentation by name, each as strong as one can see: for pictures of them.
#pragma once

#include <optional>
#include <string_view>

#include "shard/loader/augment.hpp"

namespace shard::ctl {

// The operation, applied always. None: there is none of this name. Names are those of sl.ops in Python, with
// "-" for "_", and the parts of color-jitter.
std::optional<Operation> operation_named(std::string_view name);
inline constexpr const char* kOperationNames =
    "brightness, contrast, saturation, hue, color-jitter, grayscale, gaussian-blur, solarize, posterize, "
    "equalize, auto-contrast, sharpness, invert, permute, affine, rotation, perspective, erasing, "
    "vertical-flip, turns, padded-crop";

}  // namespace shard::ctl
