// Batches of one bucket each; part of the loader's contract.
#pragma once

#include <set>
#include <utility>

#include "support/loader/free/support.hpp"

namespace shard::testing {

inline LoaderOptions bucket_options() {
  LoaderOptions options = free_options({});
  options.transform.layout = Layout::nchw;
  options.transform.flip = 0.5;
  options.buckets = {{24, 24}, {16, 32}, {32, 16}, {8, 64}};
  return options;
}

TEST_P(LoaderContract, HasOneBucketInEachBatch) {
  for (const CodecSpec& codec : {CodecSpec{}, CodecSpec{CodecSpec::Kind::packed}}) {
    TempDir dir;
    FreeShape shape;
    shape.codec = codec;
    write_free_dataset(dir.path(), shape);
    const Dataset data = Dataset::open(dir.path());
    for (const BucketCrop crop : {BucketCrop::center, BucketCrop::random})
      for (const std::uint64_t pixels : {0U, 6U * 24 * 24}) {
        LoaderOptions options = bucket_options();
        options.bucket_crop = crop;
        options.batch_pixels = pixels;
        Loader loader(data, device_, options);
        std::vector<int> times(40, 0);
        std::set<std::pair<std::uint32_t, std::uint32_t>> seen_buckets;
        loader.start_epoch(1);
        while (std::optional<Batch> batch = loader.next()) {
          const Seen seen = look(*device_, *batch);
          const SampleSpec spec = batch->spec();
          seen_buckets.insert({spec.height, spec.width});
          EXPECT_LE(seen.ids.size(),
                    pixels == 0 ? 8 : std::max<std::uint64_t>(1, pixels / (spec.height * spec.width)));
          for (std::size_t i = 0; i < seen.ids.size(); ++i) {
            const std::uint64_t id = seen.ids[i];
            const SampleSize size = free_size(id);
            const Bucket& bucket = options.buckets[bucket_of(size.height, size.width, options.buckets)];
            EXPECT_EQ(bucket.height, spec.height);
            EXPECT_EQ(bucket.width, spec.width);
            TransformOptions view = options.transform;
            view.resize = ResizeKind::cover;
            view.resize_height = bucket.height;
            view.resize_width = bucket.width;
            if (crop == BucketCrop::random) {
              view.crop = CropKind::random;
              view.crop_height = bucket.height;
              view.crop_width = bucket.width;
            }
            const SampleSpec sized = shape.spec.sized(size.height, size.width);
            const auto expected =
                plain_view(sized, free_sample(shape.spec, id), draw_crop(sized, view, 7, 1, id), spec.height,
                           spec.width, view.filter, {});
            ASSERT_EQ(0,
                      std::memcmp(expected.data(), seen.images.data() + i * expected.size(), expected.size()))
                << "sample " << id;
            EXPECT_EQ(seen.labels[i], static_cast<std::int64_t>(1000 + id));
            ++times[id];
          }
        }
        EXPECT_EQ(times, std::vector<int>(40, 1));
        EXPECT_GE(seen_buckets.size(), 3U);
        EXPECT_EQ(loader.stats().device_bytes, plan_memory(data, *device_, options).device_bytes);
      }
  }
}

TEST_P(LoaderContract, HasTheSameBucketsForAnyNumberOfRanksAndResumesInTheMiddle) {
  TempDir dir;
  write_free_dataset(dir.path(), {});
  const Dataset data = Dataset::open(dir.path());
  LoaderOptions options = bucket_options();
  options.batch_size = 6;
  const auto one = global_batches(data, device_, options, 3);
  ASSERT_GE(one.size(), 7U);
  Loader loader(data, device_, options);
  for (std::size_t done = 0; done <= one.size(); done += 3) {
    loader.start_epoch(3);
    for (std::size_t i = 0; i < done; ++i) ASSERT_TRUE(loader.next());
    const LoaderState state = LoaderState::parse(loader.state().serialize());
    for (const std::uint32_t ranks : {1U, 2U, 3U, 6U}) {
      options.world_size = ranks;
      const auto rest = global_batches(data, device_, options, 3, &state);
      EXPECT_EQ(rest, std::vector(one.begin() + static_cast<std::ptrdiff_t>(done), one.end()))
          << ranks << " ranks after " << done << " batches";
    }
    options.world_size = 1;
  }
  options.buckets.pop_back();
  Loader other(data, device_, options);
  EXPECT_SHARD_ERROR(other.resume(loader.state()), ErrorCode::invalid_argument, "another sequence");
}

TEST_P(LoaderContract, RefusesBucketsThatAreNotPossible) {
  TempDir dir;
  write_free_dataset(dir.path(), {});
  const Dataset data = Dataset::open(dir.path());
  const auto refuses = [&](const char* why, auto change) {
    LoaderOptions options = bucket_options();
    change(options);
    EXPECT_SHARD_ERROR(Loader(data, device_, options), ErrorCode::invalid_argument, why);
  };
  refuses("both sides must be at least 1", [](LoaderOptions& o) { o.buckets.push_back({0, 8}); });
  refuses("more than once", [](LoaderOptions& o) { o.buckets.push_back({16, 32}); });
  refuses("1 to 8192", [](LoaderOptions& o) { o.buckets.push_back({16, 9000}); });
  refuses("leave crop", [](LoaderOptions& o) {
    o.transform.crop = CropKind::center;
    o.transform.crop_height = o.transform.crop_width = 8;
  });
  refuses("one view", [](LoaderOptions& o) { o.further_views.emplace_back(); });
  refuses("mix", [](LoaderOptions& o) {
    o.mix.mixup = 1;
    o.tail = Tail::drop;
  });
  refuses("windowed", [](LoaderOptions& o) { o.order = OrderMode::windowed; });
  refuses("buckets need repeats 1", [](LoaderOptions& o) { o.repeats = 2; });
  refuses("leaves no batch", [](LoaderOptions& o) {
    o.tail = Tail::drop;
    o.batch_size = 40;
  });
}

}  // namespace shard::testing
