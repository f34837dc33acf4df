// Operations of augmentation by name, each as strong as one can see: for pictures of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "shard/loader/augment.hpp"

namespace shard::ctl {

// The operation, applied always. None: there is none of this name. Names are those of sl.ops in Python, with
// "-" for "_", and the parts of color-jitter; policies are not among them.
std::optional<Operation> visible_operation(std::string_view name);
std::string operation_names();  // separated by commas

}  // namespace shard::ctl
