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

// What one view of a batch is made by.
struct BatchView {
  const TransformOptions* options = nullptr;
  SampleSpec delivered;
  SampleSpec spec;  // Batch::spec()
  // With TransformOptions::patch: the first patch of each row, and the number of all. Else empty.
  std::vector<std::uint32_t> tokens{};
};

// Never changes. Loader and feeder read it.
struct LoaderSetup {
  // Errors: invalid_argument (no device; naming option and bounds).
  LoaderSetup(Dataset data, std::shared_ptr<Device> to, LoaderOptions with);
  // The same loader with other views: `views` are LoaderOptions::transform and further_views.
  // Errors: invalid_argument (naming view and bound).
  LoaderSetup(const LoaderSetup& before, std::vector<TransformOptions> views);

  Dataset dataset;
  std::shared_ptr<Device> device;
  // What was asked for and depends on the views: boxes and keypoints, to which those are added that the data
  // set knows, and how many batches are made as one.
  struct Asked {
    std::map<std::string, BoxOptions> boxes;
    std::map<std::string, KeypointOptions> keypoints;
    std::uint32_t together = 0;
    bool memory_is_open = false;
  };
  Asked asked;
  // The views as they were given, as text (view_text.hpp).
  std::string views_text;
  LoaderOptions options;  // `threads` and `prefetch` are filled in
  Order order;
  StoredForms forms;                       // of the images and the delivered fields
  std::shared_ptr<const StoredForm> form;  // of the images
  // The transforms of the views, without the samples of a batch. If batches differ in size, what is delivered
  // is the most.
  std::vector<TransformWork> transforms;
  // The views of each bucket (LoaderOptions::buckets): their options, and what they deliver.
  std::vector<TransformOptions> bucket_options;
  // Sets the views of a batch: of its bucket, or padded (`shapes`: of its samples, else not used).
  void set_views_of_batch(const BatchIndices& batch, std::span<const SampleSize> shapes,
                          std::vector<BatchView>& views) const;
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
