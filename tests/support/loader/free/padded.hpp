// Batches of samples of any size that are padded, and sorted for that; part of the loader's contract.
#pragma once

#include <set>

#include "support/loader/free/support.hpp"

namespace shard::testing {

// Each batch is as large as its largest sample, rounded up; flipped samples begin at column 0, too.
TEST_P(LoaderContract, PadsSamplesOfAnySizeToTheLargestOfTheirBatch) {
  TempDir dir;
  FreeShape shape;
  write_free_dataset(dir.path(), shape);
  const Dataset data = Dataset::open(dir.path());
  for (const bool resized : {false, true}) {
    TransformOptions view;
    view.padded = 8;
    view.flip = 0.5;
    view.layout = Layout::nchw;
    view.fill = {9, 8, 7};
    if (resized) {
      view.resize = ResizeKind::longest;
      view.resize_height = view.resize_width = 37;
    }
    Loader loader(data, device_, free_options(view));
    EXPECT_TRUE(loader.delivered().is_free());
    std::vector<int> times(40, 0);
    std::set<std::uint32_t> heights;
    loader.start_epoch(2);
    while (std::optional<Batch> batch = loader.next()) {
      const TensorView view_sizes = batch->host_column("view_sizes");
      const auto* const first = view_sizes.as<std::int64_t>();
      const std::vector<std::int64_t> sizes(first, first + view_sizes.elements());
      const Seen seen = look(*device_, *batch);
      const SampleSpec spec = batch->spec();
      heights.insert(spec.height);
      SampleSize most{1, 1};
      for (const std::uint64_t id : seen.ids) {
        const SampleSize size =
            padded_size(shape.spec.sized(free_size(id).height, free_size(id).width), view);
        most = {std::max(most.height, size.height), std::max(most.width, size.width)};
      }
      EXPECT_EQ(spec.height, (most.height + 7) / 8 * 8);
      EXPECT_EQ(spec.width, (most.width + 7) / 8 * 8);
      for (std::size_t i = 0; i < seen.ids.size(); ++i) {
        const std::uint64_t id = seen.ids[i];
        const SampleSpec sized = shape.spec.sized(free_size(id).height, free_size(id).width);
        SampleCrop crop = draw_crop(sized, view, 7, 2, id);
        place_padded(crop, spec.width);
        EXPECT_EQ(sizes[2 * i], crop.resized_height);
        EXPECT_EQ(sizes[2 * i + 1], crop.resized_width);
        const auto expected = plain_view(sized, free_sample(shape.spec, id), crop, spec.height, spec.width,
                                         view.filter, view.fill);
        ASSERT_EQ(0, std::memcmp(expected.data(), seen.images.data() + i * expected.size(), expected.size()))
            << "sample " << id;
        EXPECT_NE(expected.front(), 9) << "it begins at column 0";
        ++times[id];
      }
    }
    EXPECT_EQ(times, std::vector<int>(40, 1));
    if (!resized) {
      EXPECT_GT(heights.size(), 1U) << "batches have sizes of their own";
    }
  }
}

// Batches of samples that are padded, and of samples sorted for that.
TEST_P(LoaderContract, SortsWindowsOfPaddedSamplesForAnyNumberOfRanksAndResumesInTheMiddle) {
  TempDir dir;
  write_free_dataset(dir.path(), {});
  const Dataset data = Dataset::open(dir.path());
  TransformOptions view;
  view.padded = 1;
  LoaderOptions options = free_options(view);
  options.batch_size = 6;
  const auto plain = global_batches(data, device_, options, 3);
  const std::uint64_t plain_room = Loader(data, device_, options).options().memory.batch_bytes;
  const auto area = [](const std::vector<std::vector<std::uint64_t>>& batches) {
    std::uint64_t pixels = 0;
    for (const auto& batch : batches) {
      SampleSize most;
      for (const std::uint64_t id : batch)
        most = {std::max(most.height, free_size(id).height), std::max(most.width, free_size(id).width)};
      pixels += std::uint64_t{most.height} * most.width * batch.size();
    }
    return pixels;
  };
  for (const OrderMode order : {OrderMode::shuffle, OrderMode::windowed, OrderMode::sequential}) {
    options.order = order;
    options.window_shards = 1;
    options.length_window = 24;
    const auto one = global_batches(data, device_, options, 3);
    ASSERT_EQ(one.size(), plain.size());
    EXPECT_LT(area(one), area(plain) * 3 / 4);
    std::vector<int> times(40, 0);
    for (const auto& batch : one)
      for (const std::uint64_t id : batch) ++times[id];
    EXPECT_EQ(times, std::vector<int>(40, 1));
    Loader loader(data, device_, options);
    EXPECT_GT(loader.options().memory.batch_bytes, plain_room) << "for batches of the largest samples";
    for (std::size_t done = 0; done <= one.size(); done += 3) {
      loader.start_epoch(3);
      for (std::size_t i = 0; i < done; ++i) ASSERT_TRUE(loader.next());
      const LoaderState state = LoaderState::parse(loader.state().serialize());
      for (const std::uint32_t ranks : {1U, 2U, 3U, 6U}) {
        LoaderOptions some = options;
        some.world_size = ranks;
        EXPECT_EQ(global_batches(data, device_, some, 3, &state),
                  std::vector(one.begin() + static_cast<std::ptrdiff_t>(done), one.end()))
            << ranks << " ranks after " << done << " batches";
      }
    }
    LoaderOptions wider = options;
    wider.length_window = 36;
    Loader other(data, device_, wider);
    EXPECT_SHARD_ERROR(other.resume(loader.state()), ErrorCode::invalid_argument, "another sequence");
  }
}

TEST_P(LoaderContract, RefusesWindowsThatSortNothing) {
  TempDir dir;
  write_free_dataset(dir.path(), {});
  const Dataset data = Dataset::open(dir.path());
  const auto refuses = [&](const char* why, auto change) {
    LoaderOptions options = free_options({});
    options.transform.padded = 1;
    options.length_window = 24;
    change(options);
    EXPECT_SHARD_ERROR(Loader(data, device_, options), ErrorCode::invalid_argument, why);
  };
  refuses("no view is padded", [](LoaderOptions& o) { o.transform = views_of_any_size()[0].second; });
  refuses("length_window is 99999999", [](LoaderOptions& o) { o.length_window = 99'999'999; });
  refuses("length_window needs repeats 1", [](LoaderOptions& o) { o.repeats = 2; });
  refuses("are not padded", [](LoaderOptions& o) {
    o.transform.padded = 0;
    o.buckets = {{24, 24}};
  });
  TempDir rigid;
  write_dataset(rigid.path(), {});
  LoaderOptions options = free_options({});
  options.transform.padded = 1;
  options.length_window = 24;
  EXPECT_SHARD_ERROR(Loader(Dataset::open(rigid.path()), device_, options), ErrorCode::invalid_argument,
                     "all samples are 12 x 10");
}

}  // namespace shard::testing
