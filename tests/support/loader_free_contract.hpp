// What every device must keep with samples of any size; part of the loader's contract (loader_contract.hpp).
#pragma once

#include "free_dataset.hpp"
#include "loader_contract.hpp"

namespace shard::testing {

// Sizes as column "sizes" has them, in host memory and on the device.
inline std::vector<std::int64_t> sizes_of(Device& device, Batch& batch) {
  const TensorView there = batch.column("sizes");
  const TensorView here = batch.host_column("sizes");
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

TEST_P(LoaderContract, ViewsSamplesOfAnySizeByTheirOwnSize) {
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
}

}  // namespace shard::testing
