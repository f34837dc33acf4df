// How a loader checks its arguments.
#pragma once

#include <cstdint>
#include <vector>

#include "shard/loader/loader.hpp"

namespace shard {

// The options with `threads` and `prefetch` filled in. Errors: invalid_argument (naming the option and its
// bounds). Order checks those of the order, plan_transform() those of the transform.
LoaderOptions check_loader_options(LoaderOptions options);
// For a data set and a device: also with the limits of its ragged columns (delivered_columns.hpp), and with
// the room for samples of any size.
LoaderOptions check_loader_options(LoaderOptions options, const Dataset& dataset, const DeviceInfo& device);

// Further images do not follow a view that places what it resizes, nor samples of any size: throws
// unsupported, naming the field.
void check_fields(const DatasetInfo& info, const LoaderOptions& options);

// Images that are not converted: as a device that has memory of its own, and decodes, takes them.
Dataset for_device(Dataset data, const DeviceInfo& device);

// What an Order is made from.
std::vector<std::uint64_t> samples_of_shards(const DatasetInfo& info);
// The order of a loader, of checked options. With buckets it reads the sizes of all samples. Errors: those of
// Order and Dataset::shard(); unsupported.
Order make_order(const Dataset& dataset, const LoaderOptions& options);

}  // namespace shard
