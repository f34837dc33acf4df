// A sampling as the extension holds it.
#pragma once

#include <memory>

#include "shard/loader/sampling.hpp"

namespace shard::python {

struct SamplingHandle {
  std::shared_ptr<const Sampling> sampling;
};

}  // namespace shard::python
