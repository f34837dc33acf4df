// What a loader is made of, and what follows from that alone.
#pragma once

#include <memory>

#include "codec/stored_form.hpp"
#include "shard/loader/loader.hpp"

namespace shard {

// Never changes. Loader and feeder read it.
struct LoaderSetup {
  // Errors: invalid_argument (no device; naming option and bounds).
  LoaderSetup(Dataset data, std::shared_ptr<Device> to, LoaderOptions with);

  Dataset dataset;
  std::shared_ptr<Device> device;
  LoaderOptions options;  // `threads` is filled in
  Order order;
  std::shared_ptr<const StoredForm> form;
  // A batch's work, without the batch.
  TransformWork transform;
  // The delivered bytes are those that go to the device: there is no transform.
  bool identity;
};

}  // namespace shard
