#include "setup/loader_setup.hpp"

#include <algorithm>
#include <utility>

#include "fields/delivered_columns.hpp"
#include "fields/view_text.hpp"
#include "fields/views.hpp"
#include "setup/loader_options.hpp"
#include "setup/remote_storage.hpp"
#include "setup/together.hpp"
#include "shard/error.hpp"

namespace shard {

namespace {

std::shared_ptr<Device> require_non_null(std::shared_ptr<Device> device) {
  if (!device) throw Error(ErrorCode::invalid_argument, "the device of a loader is null");
  return device;
}

std::vector<std::uint32_t> first_tokens(const SampleSpec& stored, const TransformOptions& options,
                                        std::span<const SampleSize> shapes, std::size_t rows) {
  std::vector<std::uint32_t> tokens{0};
  for (std::size_t row = 0; row < rows; ++row) {
    const SampleSpec sized = shapes.empty() ? stored : stored.sized(shapes[row].height, shapes[row].width);
    const SampleSize grid = patch_grid(sized, options);
    tokens.push_back(tokens.back() + grid.height * grid.width);
  }
  return tokens;
}

// What a batch of samples of these sizes is padded to.
SampleSpec padded_spec(const TransformWork& work, const TransformOptions& options,
                       std::span<const SampleSize> shapes) {
  SampleSize most{1, 1};
  const auto include = [&](const SampleSpec& stored) {
    const SampleSize size = padded_size(stored, options);
    most = {std::max(most.height, size.height), std::max(most.width, size.width)};
  };
  if (shapes.empty() && !work.stored.is_free()) include(work.stored);
  for (const SampleSize& shape : shapes) include(work.stored.sized(shape.height, shape.width));
  const auto rounded = [&](std::uint32_t side) {
    return (side + options.padded - 1) / options.padded * options.padded;
  };
  SampleSpec delivered = work.delivered;
  delivered.height = rounded(most.height);
  delivered.width = rounded(most.width);
  return delivered;
}

}  // namespace

LoaderSetup::LoaderSetup(Dataset data, std::shared_ptr<Device> to, LoaderOptions with)
    : dataset(for_device(with_storage(std::move(data), with), require_non_null(to)->info())),
      device(std::move(to)),
      asked{with.boxes, with.keypoints, with.together, leaves_memory_open(with)},
      views_text(views_to_text(views_of(with))),
      options(check_loader_options(std::move(with), dataset, device->info())),
      order(make_order(dataset, options)) {
  plan();
}

LoaderSetup::LoaderSetup(const LoaderSetup& before, std::vector<TransformOptions> views)
    : dataset(before.dataset),
      device(before.device),
      asked(before.asked),
      views_text(views_to_text(views)),
      options(before.options),
      order(before.order) {
  set_views(options, std::move(views));
  check_fields(dataset.info(), options);
  options.boxes = asked.boxes;
  options.keypoints = asked.keypoints;
  options.together = asked.together;
  name_layouts(dataset.info(), options);
  set_row_limits(dataset, options);
  options.together = choose_together(dataset, device->info(), options, asked.memory_is_open);
  plan();
}

void LoaderSetup::set_views_of_batch(const BatchIndices& batch, std::span<const SampleSize> shapes,
                                     std::vector<BatchView>& views) const {
  views.clear();
  for (std::size_t view = 0; view < transforms.size(); ++view) {
    BatchView made{&view_options(options, view), transforms[view].delivered, {}, {}};
    if (!bucket_options.empty()) {
      made.options = &bucket_options[batch.bucket];
      made.delivered.height = made.options->resize_height;
      made.delivered.width = made.options->resize_width;
    } else if (made.options->patch != 0) {
      made.tokens = first_tokens(transforms[view].stored, *made.options, shapes, batch.samples.size());
    } else if (made.options->padded != 0) {
      made.delivered = padded_spec(transforms[view], *made.options, shapes);
    }
    made.spec = made.options->patch != 0 ? spec_in_batch(transforms[view]) : made.delivered;
    views.push_back(std::move(made));
  }
}

void LoaderSetup::plan() {
  const DatasetInfo& info = dataset.info();
  forms = stored_forms(info, options);
  form = forms.front();
  transforms = plan_views(info, options);
  bucket_options = bucket_views(options);
  fields = delivered_fields(info, options);
  identity = delivers_stored(info, options);
  targets = has_targets(options);
}

}  // namespace shard
