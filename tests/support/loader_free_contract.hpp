// What every device must keep with samples of any size; part of the loader's contract (loader_contract.hpp).
#pragma once

#include <set>
#include <utility>

#include "free_dataset.hpp"
#include "loader_contract.hpp"

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

// Of all combinations every thirteenth, so that each view meets several codecs, layouts and transports.
TEST_P(LoaderContract, ViewsSamplesOfAnySizeByTheirOwnSize) {
  std::size_t combination = 0;
  for (const CodecSpec& codec :
       {CodecSpec{}, CodecSpec{CodecSpec::Kind::zstd}, CodecSpec{CodecSpec::Kind::packed}})
    for (const Layout layout : {Layout::nhwc, Layout::nchw}) {
      TempDir dir;
      FreeShape shape;
      shape.codec = codec;
      shape.spec.layout = layout;
      write_free_dataset(dir.path(), shape);
      const Dataset data = Dataset::open(dir.path());
      for (const auto& [name, view] : views_of_any_size())
        for (const TransportKind kind : all_transports(dir.path())) {
          if (combination++ % 13 != 0) continue;
          SCOPED_TRACE(name + ", " + to_string(codec) + ", " + std::string(to_string(kind)));
          LoaderOptions options = free_options(view);
          options.transport = kind;
          if (kind == TransportKind::mapped && codec.kind == CodecSpec::Kind::zstd) continue;
          Loader loader(data, device_, options);
          expect_views_of_free(*device_, loader, shape, view, 0);
          if (HasFatalFailure()) return;
        }
    }
}

// Room for the largest sample only: nearly all others of its batch are made one by one.
TEST_P(LoaderContract, MakesSamplesForWhichThereIsNoRoomAfterTheOthers) {
  for (const CodecSpec& codec :
       {CodecSpec{}, CodecSpec{CodecSpec::Kind::zstd}, CodecSpec{CodecSpec::Kind::packed}}) {
    TempDir dir;
    FreeShape shape;
    shape.codec = codec;
    write_free_dataset(dir.path(), shape);
    const Dataset data = Dataset::open(dir.path());
    const std::uint64_t largest = data.info().largest().sample_bytes;
    const TransformOptions view = views_of_any_size()[0].second;
    for (const TransportKind kind : all_transports(dir.path())) {
      SCOPED_TRACE(to_string(codec) + ", " + std::string(to_string(kind)));
      if (kind == TransportKind::mapped && codec.kind == CodecSpec::Kind::zstd) continue;
      LoaderOptions options = free_options(view);
      options.transport = kind;
      options.memory.batch_bytes = largest;
      options.verify = Verify::always;
      Loader loader(data, device_, options);
      expect_views_of_free(*device_, loader, shape, view, 3);
      if (HasFatalFailure()) return;
      if (kind != TransportKind::resident) {
        EXPECT_EQ(loader.stats().device_bytes, plan_memory(data, *device_, options).device_bytes);
      }
    }
    LoaderOptions options = free_options(view);
    options.memory.batch_bytes = largest - 1;
    EXPECT_SHARD_ERROR(Loader(data, device_, options), ErrorCode::resource, "batch_bytes is");
  }
}

// Operations, mixed pairs and several views: whatever the room.
TEST_P(LoaderContract, MakesTheSameOfSamplesOfAnySizeWhateverTheRoom) {
  for (const CodecSpec& codec : {CodecSpec{}, CodecSpec{CodecSpec::Kind::packed}}) {
    TempDir dir;
    FreeShape shape;
    shape.codec = codec;
    write_free_dataset(dir.path(), shape);
    const Dataset data = Dataset::open(dir.path());
    LoaderOptions options = free_options(views_of_any_size()[0].second);
    options.tail = Tail::drop;
    options.transform.dtype = DType::f16;
    ops::ColorJitter jitter;
    jitter.brightness = Range{0.5, 1.5};
    ops::Affine turn;
    turn.degrees = {-30, 30};
    options.transform.operations = {jitter, turn};
    for (const bool mixed : {false, true}) {
      if (mixed)
        options.mix.mixup = 0.4;
      else
        options.further_views = {views_of_any_size()[6].second, views_of_any_size()[3].second};
      std::vector<Seen> first;
      for (const std::uint64_t room : {std::uint64_t{0}, 2 * data.info().largest().sample_bytes}) {
        options.memory.batch_bytes = room;
        options.transport = room == 0 ? TransportKind::automatic : TransportKind::staged;
        Loader loader(data, device_, options);
        const std::vector<Seen> seen = run_epoch(*device_, loader, 1);
        ASSERT_EQ(seen.size(), 5U);
        if (first.empty())
          first = seen;
        else
          EXPECT_EQ(seen, first) << to_string(codec) << (mixed ? ", mixed" : ", views");
      }
      options.further_views.clear();
    }
  }
}

// Each batch is as large as its largest sample, rounded up; flipped samples begin at column 0, too.
TEST_P(LoaderContract, PadsSamplesOfAnySizeToTheLargestOfTheirBatch) {
  TempDir dir;
  FreeShape shape;
  write_free_dataset(dir.path(), shape);
  const Dataset data = Dataset::open(dir.path());
  for (const bool resized : {false, true}) {
    TransformOptions view;
    view.padded = 8;
    view.flip_probability = 0.5;
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

// Column NAME of a batch in host memory, all of it.
template <class T>
std::vector<T> host_values(const Batch& batch, std::string_view name, std::size_t view = 0) {
  const TensorView column = batch.host_column(name, view);
  return {column.as<T>(), column.as<T>() + column.elements()};
}

// What is in the patches of a batch is, pixel by pixel, what plain loops make of the whole samples.
TEST_P(LoaderContract, DeliversSamplesOfAnySizeAsPatches) {
  for (const CodecSpec& codec : {CodecSpec{}, CodecSpec{CodecSpec::Kind::packed}})
    for (const Layout layout : {Layout::nhwc, Layout::nchw})
      for (const std::uint32_t side : {4U, 7U}) {
        TempDir dir;
        FreeShape shape;
        shape.codec = codec;
        shape.spec.layout = layout;
        write_free_dataset(dir.path(), shape);
        const Dataset data = Dataset::open(dir.path());
        TransformOptions view;
        view.patch = side;
        view.max_tokens = 20;
        view.flip_probability = 0.5;
        LoaderOptions options = free_options(view);
        options.memory.batch_bytes = side == 7 ? data.info().largest().sample_bytes : 0;
        Loader loader(data, device_, options);
        EXPECT_EQ(loader.stats().device_bytes, plan_memory(data, *device_, options).device_bytes);
        std::vector<int> times(40, 0);
        loader.start_epoch(1);
        while (std::optional<Batch> batch = loader.next()) {
          const auto offsets = host_values<std::int32_t>(*batch, "patch_offsets");
          const auto coords = host_values<std::int32_t>(*batch, "patch_coords");
          const auto owners = host_values<std::int32_t>(*batch, "patch_samples");
          const std::vector<std::uint64_t> ids(batch->ids().begin(), batch->ids().end());
          const TensorView images = batch->images();
          const auto patches = static_cast<std::uint64_t>(offsets.back());
          ASSERT_EQ(images.shape, (std::vector<std::uint64_t>{patches, 3 * side * side}));
          ASSERT_EQ(owners.size(), patches);
          std::vector<std::uint8_t> bytes(images.size_bytes());
          auto stream = device_->create_stream();
          batch->wait_on(*stream);
          const CopyItem item{reinterpret_cast<std::byte*>(bytes.data()), images.data, bytes.size()};
          stream->copy_to_host({&item, 1});
          stream->synchronize();
          for (std::size_t i = 0; i < ids.size(); ++i) {
            const SampleSpec sized = shape.spec.sized(free_size(ids[i]).height, free_size(ids[i]).width);
            const SampleSize grid = patch_grid(sized, view);
            ASSERT_LE(grid.height * grid.width, 20U);
            ASSERT_EQ(offsets[i + 1] - offsets[i], static_cast<std::int32_t>(grid.height * grid.width));
            const auto whole =
                plain_view(sized, free_sample(shape.spec, ids[i]), draw_crop(sized, view, 7, 1, ids[i]),
                           grid.height * side, grid.width * side, view.filter, {});
            for (auto patch = static_cast<std::size_t>(offsets[i]);
                 patch < static_cast<std::size_t>(offsets[i + 1]); ++patch) {
              ASSERT_EQ(owners[patch], static_cast<std::int32_t>(i));
              const auto row = static_cast<std::uint32_t>(coords[2 * patch]);
              const auto column = static_cast<std::uint32_t>(coords[2 * patch + 1]);
              ASSERT_EQ(patch - static_cast<std::size_t>(offsets[i]), row * grid.width + column);
              for (std::uint32_t y = 0; y < side; ++y)
                for (std::uint32_t x = 0; x < side; ++x)
                  for (std::uint32_t c = 0; c < 3; ++c)
                    ASSERT_EQ(
                        bytes[((patch * side + y) * side + x) * 3 + c],
                        whole[(std::size_t{c} * grid.height * side + row * side + y) * grid.width * side +
                              column * side + x])
                        << "sample " << ids[i] << ", patch " << row << ", " << column;
            }
            ++times[ids[i]];
          }
        }
        EXPECT_EQ(times, std::vector<int>(40, 1));
      }
}

// Operations of every kind: of tables, colours, neighbours, places, and AugMix, which has copies and sums.
inline std::vector<std::vector<Operation>> operations_of_any_size() {
  ops::ColorJitter jitter;
  jitter.p = 1;
  jitter.contrast = Range{0.4, 1.6};
  jitter.hue = Range{-0.3, 0.3};
  ops::Affine turn;
  turn.p = 1;
  turn.degrees = {-40, 40};
  turn.interpolation = Interpolation::bilinear;
  turn.fill = {200, 100, 50};
  ops::GaussianBlur blur;  // wider than many samples
  blur.p = 1;
  blur.kernel_size = 23;
  ops::PaddedCrop shift;
  shift.p = 1;
  shift.padding = 9;
  shift.reflect = true;
  ops::Perspective perspective;
  perspective.p = 0.7;
  ops::Erasing erasing;
  erasing.p = 0.7;
  ops::VerticalFlip flip;
  flip.p = 0.5;
  ops::Sharpness sharpness;
  sharpness.p = 1;
  sharpness.factor = {1.5, 3};
  return {{jitter, turn, ops::Equalize{1}},
          {blur, shift, ops::AutoContrast{1}, flip},
          {perspective, sharpness, erasing},
          {ops::AugMix{}},
          {ops::RandAugment{}, ops::ThreeAugment{}}};
}

// [row][column][channel] of a sample of any size, after its program.
inline std::vector<std::uint8_t> operated(const FreeShape& shape, const TransformOptions& view,
                                          std::uint64_t epoch, std::uint64_t id, SampleSize& size) {
  const SampleSpec sized = shape.spec.sized(free_size(id).height, free_size(id).width);
  const SampleCrop crop = draw_crop(sized, view, 7, epoch, id);
  size = {crop.resized_height, crop.resized_width};
  const auto planes =
      plain_view(sized, free_sample(shape.spec, id), crop, size.height, size.width, view.filter, {});
  const std::size_t count = std::size_t{size.height} * size.width;
  std::vector<std::uint8_t> pixels(3 * count);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = planes[i % 3 * count + i / 3];
  const SampleSpec own{DType::u8, Layout::nhwc, 3, size.height, size.width};
  std::vector<Instruction> program;
  draw_program(own, view.operations, 7, epoch, id, 0, program);
  run_program(own, program, pixels.data());
  return pixels;
}

// Operations see the pixels of their sample, whatever else is in the batch and around them.
TEST_P(LoaderContract, AppliesOperationsToPaddedSamplesAtTheirOwnSize) {
  for (const CodecSpec& codec : {CodecSpec{}, CodecSpec{CodecSpec::Kind::packed}}) {
    TempDir dir;
    FreeShape shape;
    shape.codec = codec;
    write_free_dataset(dir.path(), shape);
    const Dataset data = Dataset::open(dir.path());
    for (const auto& operations : operations_of_any_size())
      for (const bool resized : {false, true}) {
        TransformOptions view;
        view.padded = 4;
        view.flip_probability = 0.5;
        view.layout = resized ? Layout::nhwc : Layout::nchw;
        view.fill = {9, 8, 7};
        view.operations = operations;
        if (resized) {
          view.resize = ResizeKind::longest;
          view.resize_height = view.resize_width = 37;
        }
        LoaderOptions options = free_options(view);
        if (resized) options.memory.batch_bytes = data.info().largest().sample_bytes;
        Loader loader(data, device_, options);
        EXPECT_EQ(loader.stats().device_bytes, plan_memory(data, *device_, options).device_bytes);
        std::vector<int> times(40, 0);
        loader.start_epoch(2);
        while (std::optional<Batch> batch = loader.next()) {
          const Seen seen = look(*device_, *batch);
          const SampleSpec spec = batch->spec();
          for (std::size_t i = 0; i < seen.ids.size(); ++i) {
            SampleSize size;
            const auto pixels = operated(shape, view, 2, seen.ids[i], size);
            const std::byte* const got = seen.images.data() + i * spec.size_bytes();
            const std::size_t plane = std::size_t{spec.height} * spec.width;
            for (std::uint32_t y = 0; y < spec.height; ++y)
              for (std::uint32_t x = 0; x < spec.width; ++x)
                for (std::uint32_t c = 0; c < 3; ++c) {
                  const std::size_t pixel = std::size_t{y} * spec.width + x;
                  const std::uint8_t expected = y < size.height && x < size.width
                                                    ? pixels[(std::size_t{y} * size.width + x) * 3 + c]
                                                    : view.fill[c];
                  ASSERT_EQ(std::to_integer<int>(got[resized ? 3 * pixel + c : c * plane + pixel]), expected)
                      << name_of(operations[0]) << ": sample " << seen.ids[i] << " of " << size.height
                      << " x " << size.width << ", row " << y << ", column " << x;
                }
            ++times[seen.ids[i]];
          }
        }
        EXPECT_EQ(times, std::vector<int>(40, 1));
      }
  }
}

// The same before a sample is cut into patches.
TEST_P(LoaderContract, AppliesOperationsToSamplesThatBecomePatches) {
  for (const CodecSpec& codec : {CodecSpec{}, CodecSpec{CodecSpec::Kind::packed}})
    for (const std::uint32_t side : {4U, 7U}) {
      TempDir dir;
      FreeShape shape;
      shape.codec = codec;
      write_free_dataset(dir.path(), shape);
      const Dataset data = Dataset::open(dir.path());
      for (const auto& operations : operations_of_any_size()) {
        TransformOptions view;
        view.patch = side;
        view.max_tokens = 20;
        view.flip_probability = 0.5;
        view.operations = operations;
        LoaderOptions options = free_options(view);
        options.memory.batch_bytes = side == 7 ? data.info().largest().sample_bytes : 0;
        Loader loader(data, device_, options);
        EXPECT_EQ(loader.stats().device_bytes, plan_memory(data, *device_, options).device_bytes);
        loader.start_epoch(1);
        while (std::optional<Batch> batch = loader.next()) {
          const auto offsets = host_values<std::int32_t>(*batch, "patch_offsets");
          const TensorView images = batch->images();
          std::vector<std::uint8_t> bytes(images.size_bytes());
          auto stream = device_->create_stream();
          batch->wait_on(*stream);
          const CopyItem item{reinterpret_cast<std::byte*>(bytes.data()), images.data, bytes.size()};
          stream->copy_to_host({&item, 1});
          stream->synchronize();
          for (std::size_t i = 0; i < batch->size(); ++i) {
            SampleSize size;
            const auto pixels = operated(shape, view, 1, batch->ids()[i], size);
            const std::uint32_t across = size.width / side;
            for (std::uint32_t y = 0; y < size.height; ++y)
              for (std::uint32_t x = 0; x < size.width; ++x)
                for (std::uint32_t c = 0; c < 3; ++c) {
                  const std::size_t patch =
                      static_cast<std::size_t>(offsets[i]) + y / side * across + x / side;
                  ASSERT_EQ(bytes[((patch * side + y % side) * side + x % side) * 3 + c],
                            pixels[(std::size_t{y} * size.width + x) * 3 + c])
                      << name_of(operations[0]) << ": sample " << batch->ids()[i] << ", row " << y
                      << ", column " << x;
                }
          }
        }
      }
    }
}

inline LoaderOptions bucket_options() {
  LoaderOptions options = free_options({});
  options.transform.layout = Layout::nchw;
  options.transform.flip_probability = 0.5;
  options.buckets = {{24, 24}, {16, 32}, {32, 16}, {8, 64}};
  return options;
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
  refuses("each sample once", [](LoaderOptions& o) { o.repeats = 2; });
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
  refuses("each sample once", [](LoaderOptions& o) { o.repeats = 2; });
  refuses("leaves no batch", [](LoaderOptions& o) {
    o.tail = Tail::drop;
    o.batch_size = 40;
  });
}

TEST_P(LoaderContract, RefusesPatchesThatAreNotPossible) {
  TempDir dir;
  write_free_dataset(dir.path(), {});
  const Dataset data = Dataset::open(dir.path());
  const auto refuses = [&](const char* why, auto change) {
    LoaderOptions options = free_options({});
    options.transform.patch = 16;
    options.transform.max_tokens = 64;
    change(options);
    EXPECT_SHARD_ERROR(Loader(data, device_, options), ErrorCode::invalid_argument, why);
  };
  refuses("they go together", [](LoaderOptions& o) { o.transform.max_tokens = 0; });
  refuses("1 to 256", [](LoaderOptions& o) { o.transform.patch = 257; });
  refuses("leave layout out", [](LoaderOptions& o) { o.transform.layout = Layout::nchw; });
  refuses("leave crop", [](LoaderOptions& o) { o.transform.padded = 8; });
  refuses("use turns 2", [](LoaderOptions& o) {
    ops::Turns turns;
    turns.p = 1;
    o.transform.operations = {turns};
  });
  refuses("mixed pairs", [](LoaderOptions& o) {
    o.mix.mixup = 1;
    o.tail = Tail::drop;
  });
  refuses("correspondence", [](LoaderOptions& o) { o.correspondence = true; });
  refuses("lower batch_size", [](LoaderOptions& o) {
    o.batch_size = 65'536;
    o.transform.max_tokens = 65'536;
  });
}

TEST_P(LoaderContract, RefusesViewsThatDoNotMakeOneSize) {
  TempDir dir;
  write_free_dataset(dir.path(), {});
  const Dataset data = Dataset::open(dir.path());
  const auto refuses = [&](const TransformOptions& view, const char* why) {
    EXPECT_SHARD_ERROR(Loader(data, device_, free_options(view)), ErrorCode::invalid_argument, why);
  };
  TransformOptions view;
  refuses(view, "any size");
  view.flip_probability = 0.5;
  refuses(view, "any size");
  view.resize = ResizeKind::shortest;
  view.resize_height = view.resize_width = 8;
  refuses(view, "add a crop");
  view.crop = CropKind::random_resized;
  view.crop_height = view.crop_width = 8;
  refuses(view, "leave one out");
  view.crop = CropKind::center;
  view.resize_width = 9;
  refuses(view, "given twice");
  view.resize = ResizeKind::letterbox;
  refuses(view, "leave crop out");
  view = {};
  view.resize = ResizeKind::letterbox;
  view.resize_height = view.resize_width = 8;
  view.fill = {1, 2};
  refuses(view, "fill has 2 values");
  view.fill = {};
  view.resize_height = 0;
  refuses(view, "must be 1 to 8192");
  view = {};
  view.padded = 8;
  ops::Turns turns;
  turns.p = 1;
  view.operations = {turns};
  refuses(view, "use turns 2");
  view.operations = {};
  view.resize = ResizeKind::squash;
  view.resize_height = view.resize_width = 8;
  refuses(view, "leave crop out, and resize but for longest");
}

}  // namespace shard::testing
