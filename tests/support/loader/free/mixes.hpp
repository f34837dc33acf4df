// Mixes of data sets whose samples have any size, padded and as patches; part of the loader's contract.
#pragma once

#include "support/loader/free/patches.hpp"
#include "support/loader/free/support.hpp"

namespace shard::testing {

// Two data sets of 40 samples, whose codecs differ; the second is drawn three times as often.
class MixOfFree {
 public:
  explicit MixOfFree(FreeShape shape = {}) : shape_(std::move(shape)) {
    write_free_dataset(first_.path(), shape_);
    FreeShape packed = shape_;
    packed.codec = CodecSpec{CodecSpec::Kind::packed};
    write_free_dataset(second_.path(), packed);
    data_ = Dataset::concat(std::vector{Dataset::open(first_.path()), Dataset::open(second_.path())});
  }

  const FreeShape& shape() const noexcept { return shape_; }
  const Dataset& data() const noexcept { return *data_; }
  LoaderOptions options(const TransformOptions& view) const {
    LoaderOptions options = free_options(view);
    options.batch_size = 6;
    options.sampling = Sampling::mix(std::vector<Sampling::Part>{{40, 1}, {40, 3}});
    options.samples_per_epoch = 100;
    return options;
  }
  // What a loader with these options draws.
  Order order(const LoaderOptions& options) const {
    std::vector<std::uint64_t> shards;
    for (const ShardSummary& shard : data_->info().shards) shards.push_back(shard.samples);
    if (options.length_window == 0) return {shards, options};
    std::vector<std::uint32_t> sizes;
    for (std::uint64_t id = 0; id < 80; ++id)
      sizes.push_back(free_size(id % 40).height << 16U | free_size(id % 40).width);
    return {shards, options, sizes, options.length_window};
  }

 private:
  TempDir first_;
  TempDir second_;
  FreeShape shape_;
  std::optional<Dataset> data_;
};

// The same global batches for any number of ranks, and from any batch on.
inline void expect_one_mix(const MixOfFree& mix, const std::shared_ptr<Device>& device,
                           const LoaderOptions& options) {
  const auto one = global_batches(mix.data(), device, options, 3);
  std::size_t of_second = 0;
  std::size_t all = 0;
  for (const auto& batch : one) {
    all += batch.size();
    for (const std::uint64_t id : batch) of_second += id >= 40 ? 1 : 0;
  }
  EXPECT_EQ(all, 100U);
  EXPECT_EQ(of_second, 75U);
  Loader loader(mix.data(), device, options);
  for (std::size_t done = 0; done <= one.size(); done += 5) {
    loader.start_epoch(3);
    for (std::size_t i = 0; i < done; ++i) ASSERT_TRUE(loader.next());
    const LoaderState state = LoaderState::parse(loader.state().serialize());
    for (const std::uint32_t ranks : {1U, 2U, 3U}) {
      LoaderOptions some = options;
      some.world_size = ranks;
      EXPECT_EQ(global_batches(mix.data(), device, some, 3, &state),
                std::vector(one.begin() + static_cast<std::ptrdiff_t>(done), one.end()))
          << ranks << " ranks after " << done << " batches";
    }
  }
}

// With and without windows of samples of about the same size. A sample that comes twice has flips of its own.
TEST_P(LoaderContract, PadsWhatAMixOfDataSetsDraws) {
  const MixOfFree mix;
  TransformOptions view;
  view.padded = 4;
  view.flip = 0.5;
  view.layout = Layout::nchw;
  view.fill = {9, 8, 7};
  for (const std::uint64_t window : {0U, 36U}) {
    LoaderOptions options = mix.options(view);
    options.length_window = window;
    const Order order = mix.order(options);
    Loader loader(mix.data(), device_, options);
    loader.start_epoch(3);
    std::uint64_t number = 0;
    for (; std::optional<Batch> batch = loader.next(); ++number) {
      BatchIndices drawn;
      order.batch(3, number, drawn);
      const Seen seen = look(*device_, *batch);
      ASSERT_EQ(seen.ids, drawn.samples) << "batch " << number << ", window " << window;
      const SampleSpec spec = batch->spec();
      for (std::size_t i = 0; i < seen.ids.size(); ++i) {
        const std::uint64_t id = seen.ids[i] % 40;
        const SampleSpec sized = mix.shape().spec.sized(free_size(id).height, free_size(id).width);
        SampleCrop crop = draw_crop(sized, view, 7, 3, drawn.draws[i]);
        place_padded(crop, spec.width);
        const auto expected = plain_view(sized, free_sample(mix.shape().spec, id), crop, spec.height,
                                         spec.width, view.filter, view.fill);
        ASSERT_EQ(0, std::memcmp(expected.data(), seen.images.data() + i * expected.size(), expected.size()))
            << "sample " << seen.ids[i];
      }
    }
    EXPECT_EQ(number, order.batches());
    expect_one_mix(mix, device_, options);
  }
}

TEST_P(LoaderContract, CutsWhatAMixOfDataSetsDrawsIntoPatches) {
  const MixOfFree mix;
  TransformOptions view;
  view.patch = 4;
  view.max_tokens = 20;
  view.flip = 0.5;
  const LoaderOptions options = mix.options(view);
  const Order order = mix.order(options);
  Loader loader(mix.data(), device_, options);
  loader.start_epoch(3);
  std::uint64_t number = 0;
  for (; std::optional<Batch> batch = loader.next(); ++number) {
    BatchIndices drawn;
    order.batch(3, number, drawn);
    ASSERT_EQ(std::vector(batch->ids().begin(), batch->ids().end()), drawn.samples) << "batch " << number;
    expect_patches(*device_, *batch, mix.shape(), view, 3, drawn.draws);
  }
  EXPECT_EQ(number, order.batches());
  expect_one_mix(mix, device_, options);
}

}  // namespace shard::testing
