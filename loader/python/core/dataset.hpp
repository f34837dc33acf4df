// A data set as the extension holds it.
#pragma once

#include <memory>

#include "shard/dataset.hpp"

namespace shard::python {

struct DatasetHandle {
  std::shared_ptr<const Dataset> data;
};

}  // namespace shard::python
