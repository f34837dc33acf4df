// What the contracts about samples of any size share.
#pragma once

#include "support/loader/free_dataset.hpp"
#include "support/loader/loader_contract.hpp"

namespace shard::testing {

// Sizes as column "stored_sizes" has them, in host memory and on the device.
inline std::vector<std::int64_t> sizes_of(Device& device, Batch& batch) {
  const TensorView there = batch.column("stored_sizes");
  const TensorView here = batch.host_column("stored_sizes");
  EXPECT_EQ(there.shape, (std::vector<std::uint64_t>{batch.size(), 2}));
  std::vector<std::int64_t> values(there.elements());
  auto stream = device.create_stream();
  batch.wait_on(*stream);
  const CopyItem item{reinterpret_cast<std::byte*>(values.data()), there.data, there.size_bytes()};
  stream->copy_to_host({&item, 1});
  stream->synchronize();
  if (!values.empty()) {
    EXPECT_EQ(0, std::memcmp(values.data(), here.data, here.size_bytes()));
  }
  return values;
}

// Every sample of an epoch once, each as plain loops make it. `free`: all of u8 and nchw.
inline void expect_views_of_free(Device& device, Loader& loader, const FreeShape& shape,
                                 const TransformOptions& view, std::uint64_t epoch) {
  std::vector<int> times(40, 0);
  loader.start_epoch(epoch);
  while (std::optional<Batch> batch = loader.next()) {
    const std::vector<std::int64_t> sizes = sizes_of(device, *batch);
    const Seen seen = look(device, *batch);
    const SampleSpec& delivered = batch->spec();
    for (std::size_t i = 0; i < seen.ids.size(); ++i) {
      const std::uint64_t id = seen.ids[i];
      const SampleSize size = free_size(id);
      EXPECT_EQ(sizes[2 * i], size.height) << id;
      EXPECT_EQ(sizes[2 * i + 1], size.width) << id;
      const SampleSpec sized = shape.spec.sized(size.height, size.width);
      const SampleCrop crop = draw_crop(sized, view, 7, epoch, id);
      const auto expected = plain_view(sized, free_sample(shape.spec, id), crop, delivered.height,
                                       delivered.width, view.filter, view.fill);
      ASSERT_EQ(expected.size(), delivered.size_bytes());
      ASSERT_EQ(0, std::memcmp(expected.data(), seen.images.data() + i * expected.size(), expected.size()))
          << "sample " << id << " of " << size.height << " x " << size.width;
      EXPECT_EQ(seen.labels[i], static_cast<std::int64_t>(1000 + id));
      ++times[id];
    }
  }
  EXPECT_EQ(times, std::vector<int>(40, 1));
}

inline LoaderOptions free_options(const TransformOptions& view) {
  LoaderOptions options;
  options.batch_size = 8;
  options.threads = 2;
  options.seed = 7;
  options.tail = Tail::short_;
  options.transform = view;
  return options;
}

// Column NAME of a batch in host memory, all of it.
template <class T>
std::vector<T> host_values(const Batch& batch, std::string_view name, std::size_t view = 0) {
  const TensorView column = batch.host_column(name, view);
  return {column.as<T>(), column.as<T>() + column.elements()};
}

// Which samples each global batch of an epoch has, from `first` on, by all ranks in turn.
inline std::vector<std::vector<std::uint64_t>> global_batches(const Dataset& data,
                                                              const std::shared_ptr<Device>& device,
                                                              LoaderOptions options, std::uint64_t epoch,
                                                              const LoaderState* from = nullptr) {
  std::vector<std::vector<std::uint64_t>> batches;
  const std::uint64_t all = options.batch_size;
  for (std::uint32_t rank = 0; rank < options.world_size; ++rank) {
    options.rank = rank;
    options.batch_size = all / options.world_size;
    Loader loader(data, device, options);
    if (from != nullptr)
      loader.resume(*from);
    else
      loader.start_epoch(epoch);
    for (std::size_t b = 0; std::optional<Batch> batch = loader.next(); ++b) {
      if (rank == 0) batches.emplace_back();
      batches[b].insert(batches[b].end(), batch->ids().begin(), batch->ids().end());
    }
  }
  return batches;
}

}  // namespace shard::testing
