// A loader's data set, device and options, and what can be computed from them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "codec/stored_form.hpp"
#include "fields/fields.hpp"
#include "shard/loader/loader.hpp"

namespace shard {

// Never changes. Loader and feeder read it.
struct LoaderSetup {
  // Errors: invalid_argument (no device; naming option and bounds).
  LoaderSetup(Dataset data, std::shared_ptr<Device> to, LoaderOptions with);
  // The same loader with other views: `views` are LoaderOptions::transform and further_views.
  // Errors: invalid_argument (naming view and bound).
  LoaderSetup(const LoaderSetup& before, std::vector<TransformOptions> views);

  Dataset dataset;
  std::shared_ptr<Device> device;
  // Boxes and keypoints that were asked for. Those that the data set knows are added for the views.
  struct Asked {
    std::map<std::string, BoxOptions> boxes;
    std::map<std::string, KeypointOptions> keypoints;
  };
  Asked asked;
  // The views as they were given, as text (view_text.hpp).
  std::string views_text;
  LoaderOptions options;  // `threads` is filled in
  Order order;
  StoredForms forms;                       // of the images and the delivered fields
  std::shared_ptr<const StoredForm> form;  // of the images
  // The transforms of the views, without the samples of a batch.
  std::vector<TransformWork> transforms;
  std::vector<DeliveredField> fields;
  // True if there is no transform: the delivered bytes are those that go to the device.
  bool identity = false;
  // True if anything follows the images (has_targets()).
  bool targets = false;

 private:
  // Everything that depends on options and views.
  void plan();
};

}  // namespace shard
