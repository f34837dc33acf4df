#include "setup/loader_setup.hpp"

#include <utility>

#include "fields/delivered_columns.hpp"
#include "fields/view_text.hpp"
#include "fields/views.hpp"
#include "setup/loader_options.hpp"
#include "setup/remote_storage.hpp"
#include "shard/error.hpp"

namespace shard {

namespace {

std::shared_ptr<Device> require_non_null(std::shared_ptr<Device> device) {
  if (!device) throw Error(ErrorCode::invalid_argument, "the device of a loader is null");
  return device;
}

}  // namespace

LoaderSetup::LoaderSetup(Dataset data, std::shared_ptr<Device> to, LoaderOptions with)
    : dataset(with_storage(std::move(data), with)),
      device(require_non_null(std::move(to))),
      asked{with.boxes, with.keypoints},
      views_text(views_to_text(views_of(with))),
      options(check_loader_options(std::move(with), dataset)),
      order(samples_of_shards(dataset.info()), options) {
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
  options.boxes = asked.boxes;
  options.keypoints = asked.keypoints;
  name_layouts(dataset.info(), options);
  set_row_limits(dataset, options);
  plan();
}

void LoaderSetup::plan() {
  const DatasetInfo& info = dataset.info();
  forms = stored_forms(info, options);
  form = forms.front();
  transforms = plan_views(info, options);
  fields = delivered_fields(info, options);
  identity = delivers_stored(info, options);
  targets = has_targets(options);
}

}  // namespace shard
