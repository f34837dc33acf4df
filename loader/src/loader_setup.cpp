#include "loader_setup.hpp"

#include <fmt/format.h>

#include <utility>

#include "loader_options.hpp"
#include "shard/error.hpp"

namespace shard {

namespace {

template <class T>
std::shared_ptr<T> require_non_null(std::shared_ptr<T> pointer, const char* name) {
  if (!pointer) throw Error(ErrorCode::invalid_argument, fmt::format("the {} of a loader is null", name));
  return pointer;
}

}  // namespace

LoaderSetup::LoaderSetup(std::shared_ptr<const Dataset> data, std::shared_ptr<Device> to, LoaderOptions with)
    : dataset(require_non_null(std::move(data), "data set")),
      device(require_non_null(std::move(to), "device")),
      options(check_loader_options(std::move(with))),
      order(samples_of_shards(dataset->info()), options),
      form(make_stored_form(dataset->info())),
      transform(plan_transform(dataset->info(), options.transform)),
      identity(is_identity(dataset->info(), options.transform)) {}

}  // namespace shard
