// Every option with a value that cannot be: refused when the loader is made, by name, value and bounds.
#include <functional>
#include <limits>

#include "shard/loader/memory.hpp"
#include "support/device/limited_device.hpp"
#include "support/expect_error.hpp"
#include "support/loader/loader_fixture.hpp"

namespace shard::testing {
namespace {

struct BadOption {
  const char* name;
  std::function<void(LoaderOptions&)> change;
  std::vector<std::string> pieces;  // of the message
  ErrorCode code = ErrorCode::invalid_argument;
};

template <class Choice>
Choice choice(int value) {
  return static_cast<Choice>(value);
}

void crop(LoaderOptions& o, CropKind kind, std::uint32_t height, std::uint32_t width) {
  o.transform.crop = kind;
  o.transform.crop_height = height;
  o.transform.crop_width = width;
}

// The data set: 4 shards of 37, 20, 41 and 3 samples, u8 NHWC, 12 rows and 10 columns.
std::vector<BadOption> bad_options() {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  const auto normalized = [](LoaderOptions& o, float mean, float std) {
    o.transform.dtype = DType::f16;
    o.transform.normalization = Normalization{{0, mean, 0}, {1, std, 1}};
  };
  const auto resized = [](LoaderOptions& o, double low, double high, bool scale) {
    crop(o, CropKind::random_resized, 8, 8);
    (scale ? o.transform.scale : o.transform.ratio) = {low, high};
  };
  return {
      // OrderOptions
      {"batch_size 0", [](auto& o) { o.batch_size = 0; }, {"batch_size is 0", "1 to 65536"}},
      {"batch_size 65537", [](auto& o) { o.batch_size = 65'537; }, {"batch_size is 65537", "1 to 65536"}},
      {"batch_size huge",
       [](auto& o) { o.batch_size = ~std::uint64_t{0}; },
       {"batch_size is 18446744073709551615", "1 to 65536"}},
      {"batch_size 102, drop",
       [](auto& o) { o.batch_size = 102; },
       {"batch_size", "102", "101 samples", "tail"}},
      {"world 0", [](auto& o) { o.world_size = 0; }, {"rank is 0 and world_size 0", "0 to world_size - 1"}},
      {"rank 1 of 1", [](auto& o) { o.rank = 1; }, {"rank is 1 and world_size 1", "0 to world_size - 1"}},
      {"rank huge",
       [](auto& o) {
         o.rank = ~0U;
         o.world_size = 8;
       },
       {"rank is 4294967295 and world_size 8"}},
      {"mode",
       [](auto& o) { o.order = choice<OrderMode>(3); },
       {"order is 3", "sequential (0)", "windowed (2)"}},
      {"partition", [](auto& o) { o.partition = choice<Partition>(9); }, {"partition is 9", "by_shard (1)"}},
      {"tail", [](auto& o) { o.tail = choice<Tail>(4); }, {"tail is 4", "drop (0)", "short (3)"}},
      {"window_shards 0",
       [](auto& o) {
         o.order = OrderMode::windowed;
         o.window_shards = 0;
       },
       {"window_shards is 0", "at least 1"}},
      {"by_shard, 5 ranks",
       [](auto& o) {
         o.partition = Partition::by_shard;
         o.world_size = 5;
       },
       {"by_shard", "5 ranks", "there are 4"}},
      // LoaderOptions
      {"transport",
       [](auto& o) { o.transport = choice<TransportKind>(5); },
       {"transport is 5", "auto (0)", "resident (4)"}},
      {"verify", [](auto& o) { o.verify = choice<Verify>(3); }, {"verify is 3", "never (0)", "always (2)"}},
      {"prefetch 65", [](auto& o) { o.prefetch = 65; }, {"prefetch is 65", "0 to 64"}},
      {"together 65", [](auto& o) { o.together = 65; }, {"together is 65", "0 to 64"}},
      {"threads 257", [](auto& o) { o.threads = 257; }, {"threads is 257", "to 256"}},
      {"pinned_bytes",
       [](auto& o) {
         o.transport = TransportKind::staged;
         o.memory.pinned_bytes = 14'399;
       },
       {"pinned_bytes is 14399", "14400 bytes"},
       ErrorCode::resource},
      {"registered_bytes",
       [](auto& o) {
         o.transport = TransportKind::mapped;
         o.memory.registered_bytes = 1000;
       },
       {"registered_bytes", "budget of 1000 bytes"},
       ErrorCode::resource},
      {"registered_bytes, shuffle",
       [](auto& o) {
         o.transport = TransportKind::mapped;
         o.memory.registered_bytes = 30'000;
       },
       {"registered_bytes", "budget of 30000 bytes", "windowed"},
       ErrorCode::resource},
      {"resident_bytes",
       [](auto& o) {
         o.transport = TransportKind::resident;
         o.memory.resident_bytes = 359;
       },
       {"resident_bytes is 359", "360 bytes"},
       ErrorCode::resource},
      // TransformOptions
      {"crop",
       [](auto& o) { crop(o, choice<CropKind>(4), 5, 5); },
       {"crop is 4", "none (0)", "random_resized (3)"}},
      {"crop none with a size",
       [](auto& o) { crop(o, CropKind::none, 5, 0); },
       {"crop_height is 5", "crop_width 0", "crop is none"}},
      {"crop_height 0",
       [](auto& o) { crop(o, CropKind::random, 0, 5); },
       {"crop_height is 0", "crop_width 5", "at least 1"}},
      {"crop_width 0",
       [](auto& o) { crop(o, CropKind::random_resized, 5, 0); },
       {"crop_height is 5", "crop_width 0", "at least 1"}},
      {"crop_height 13",
       [](auto& o) { crop(o, CropKind::center, 13, 5); },
       {"13 x 5", "12 x 10", "crop_height"}},
      {"crop_width 11",
       [](auto& o) { crop(o, CropKind::random, 12, 11); },
       {"12 x 11", "12 x 10", "crop_width"}},
      {"crop 8193",
       [](auto& o) { crop(o, CropKind::random_resized, 8193, 8); },
       {"8193 x 8", "8192 x 8192", "crop_height"}},
      {"scale low 0", [=](auto& o) { resized(o, 0, 1, true); }, {"scale is [0, 1]", "0 < low <= high <= 1"}},
      {"scale high 1.5", [=](auto& o) { resized(o, 0.5, 1.5, true); }, {"scale is [0.5, 1.5]", "<= 1"}},
      {"scale reversed",
       [=](auto& o) { resized(o, 0.6, 0.5, true); },
       {"scale is [0.6, 0.5]", "low <= high"}},
      {"scale nan", [=](auto& o) { resized(o, nan, 1, true); }, {"scale is [nan, 1]"}},
      {"ratio low -1", [=](auto& o) { resized(o, -1, 1, false); }, {"ratio is [-1, 1]", "0 < low <= high"}},
      {"ratio reversed", [=](auto& o) { resized(o, 2, 1, false); }, {"ratio is [2, 1]", "low <= high"}},
      {"ratio infinite", [=](auto& o) { resized(o, 1, infinite, false); }, {"ratio is [1, inf]"}},
      {"flip -0.1", [](auto& o) { o.transform.flip = -0.1; }, {"flip is -0.1", "0 to 1"}},
      {"flip 1.1", [](auto& o) { o.transform.flip = 1.1; }, {"flip is 1.1", "0 to 1"}},
      {"flip nan", [=](auto& o) { o.transform.flip = nan; }, {"flip is nan", "0 to 1"}},
      {"dtype f64", [](auto& o) { o.transform.dtype = DType::f64; }, {"dtype f64", "u8, f16, bf16 or f32"}},
      {"dtype 200",
       [](auto& o) { o.transform.dtype = choice<DType>(200); },
       {"dtype is 200", "u8, f16, bf16 or f32"}},
      {"layout",
       [](auto& o) { o.transform.layout = choice<Layout>(2); },
       {"layout is 2", "nchw (0) or nhwc (1)"}},
      {"normalization to u8",
       [](auto& o) { o.transform.normalization = Normalization{}; },
       {"normalization applies", "f16, bf16 or f32"}},
      {"normalization mean",
       [=](auto& o) { normalized(o, std::numeric_limits<float>::infinity(), 1); },
       {"normalization", "mean inf", "channel 1", "finite"}},
      {"normalization std",
       [=](auto& o) { normalized(o, 0.5F, 0); },
       {"normalization", "std 0 ", "channel 1", "above 0"}},
      {"normalization std below 0",
       [=](auto& o) { normalized(o, 0.5F, -0.25F); },
       {"normalization", "std -0.25 ", "channel 1", "above 0"}},
  };
}

class LoaderOptionsTable : public ::testing::Test {
 protected:
  void SetUp() override {
    write_dataset(dir_.path(), {});
    data_ = Dataset::open(dir_.path());
  }
  static LoaderOptions good() {
    LoaderOptions options;
    options.batch_size = 8;
    options.threads = 1;
    return options;
  }

  TempDir dir_;
  std::optional<Dataset> data_;
};

TEST_F(LoaderOptionsTable, RefusesEachBadOptionByNameValueAndBounds) {
  for (const BadOption& bad : bad_options()) {
    SCOPED_TRACE(bad.name);
    auto device = make_gpu_like_device(1);
    LoaderOptions options = good();
    bad.change(options);
    for (const std::string& piece : bad.pieces)
      EXPECT_SHARD_ERROR(Loader(*data_, device, options), bad.code, piece);
    for (const std::string& piece : bad.pieces)
      EXPECT_SHARD_ERROR(plan_memory(*data_, *device, options), bad.code, piece);
    for (DeviceCall call : kDeviceCalls) EXPECT_EQ(device->alive(call), 0) << to_string(call);
  }
}

TEST_F(LoaderOptionsTable, TakesTheValuesAtTheBounds) {
  const std::function<void(LoaderOptions&)> changes[] = {
      [](auto&) {},
      [](auto& o) { o.batch_size = 1; },
      [](auto& o) { o.batch_size = 101; },
      [](auto& o) {
        o.batch_size = 102;
        o.tail = Tail::wrap;
      },
      [](auto& o) {
        o.rank = 7;
        o.world_size = 8;
      },
      [](auto& o) {
        o.order = OrderMode::windowed;
        o.window_shards = ~0U;
      },
      [](auto& o) {
        o.partition = Partition::by_shard;
        o.world_size = 4;
      },
      [](auto& o) { o.prefetch = 64; },
      [](auto& o) { o.threads = 256; },
      [](auto& o) {
        o.transport = TransportKind::staged;
        o.memory.pinned_bytes = 14'400;
      },
      [](auto& o) {
        o.transport = TransportKind::resident;
        o.memory.resident_bytes = 360;
      },
      [](auto& o) { crop(o, CropKind::center, 12, 10); },
      [](auto& o) {
        crop(o, CropKind::random_resized, 1, 1);
        o.transform.scale = {1, 1};
        o.transform.ratio = {1, 1};
      },
      [](auto& o) { o.transform.flip = 1; },
  };
  for (const auto& change : changes) {
    LoaderOptions options = good();
    change(options);
    auto device = make_gpu_like_device(1);
    Loader loader(*data_, device, options);
    EXPECT_TRUE(loader.next());
  }
}

// On a GPU the 101 samples are 12 batches of 8; each change alone makes them one by one.
TEST_F(LoaderOptionsTable, SaysHowManyBatchesAreMadeAsOne) {
  const auto of = [&](const std::shared_ptr<Device>& device,
                      const std::function<void(LoaderOptions&)>& change) {
    LoaderOptions options = good();
    change(options);
    return Loader(*data_, device, options).options().together;
  };
  const std::shared_ptr<Device> gpu = make_gpu_like_device(1);
  EXPECT_EQ(of(gpu, [](auto&) {}), 12U);
  EXPECT_EQ(of(gpu, [](auto& o) { o.batch_size = 50; }), 2U);
  EXPECT_EQ(of(gpu, [](auto& o) { o.batch_size = 1; }), 16U);
  EXPECT_EQ(of(make_host_device(1), [](auto&) {}), 1U);
  EXPECT_EQ(of(make_host_device(1), [](auto& o) { o.together = 3; }), 3U);
  EXPECT_EQ(of(gpu, [](auto& o) { o.prefetch = 4; }), 1U);
  EXPECT_EQ(of(gpu, [](auto& o) { o.memory.pinned_bytes = 100'000; }), 1U);
  EXPECT_EQ(of(gpu, [](auto& o) { o.memory.readahead_bytes = 100'000; }), 1U);
  for (const std::uint32_t asked : {0U, 3U}) {
    EXPECT_EQ(of(gpu,
                 [&](auto& o) {
                   o.together = asked;
                   o.mix.mixup = 1;
                 }),
              1U);
    EXPECT_EQ(of(gpu,
                 [&](auto& o) {
                   o.together = asked;
                   o.transform.patch = 2;
                   o.transform.max_tokens = 30;
                 }),
              1U);
  }
}

// Samples that stay on a GPU wait for no link: kernels of more rows.
TEST_F(LoaderOptionsTable, MakesMoreRowsAtOnceOfSamplesThatStayOnTheDevice) {
  TempDir dir;
  DatasetShape shape;
  shape.shards = {1100};
  write_dataset(dir.path(), shape);
  const Dataset data = Dataset::open(dir.path());
  const auto together = [&](TransportKind transport, std::uint32_t batch_size) {
    LoaderOptions options = good();
    options.transport = transport;
    options.batch_size = batch_size;
    return Loader(data, make_gpu_like_device(1), options).options().together;
  };
  EXPECT_EQ(together(TransportKind::resident, 256), 2U);
  EXPECT_EQ(together(TransportKind::resident, 257), 1U);
  EXPECT_EQ(together(TransportKind::resident, 64), 8U);
  EXPECT_EQ(together(TransportKind::mapped, 256), 1U);
  EXPECT_EQ(together(TransportKind::mapped, 64), 4U);
}

TEST_F(LoaderOptionsTable, RefusesNoDataSetAndNoDevice) {
  EXPECT_SHARD_ERROR(Loader(*data_, nullptr, good()), ErrorCode::invalid_argument, "device");
  EXPECT_SHARD_ERROR(make_host_device(0), ErrorCode::invalid_argument, "0 threads: it must have 1 to 64");
  EXPECT_SHARD_ERROR(make_host_device(65), ErrorCode::invalid_argument, "65 threads: it must have 1 to 64");
}

// What resume() holds against the loader.
TEST_F(LoaderOptionsTable, RefusesAStateOfAnotherRunByWhatDiffers) {
  Loader loader(*data_, make_host_device(1), good());
  const LoaderState mine = loader.state();
  const auto expect_refusal = [&](const std::function<void(LoaderState&)>& change, const char* piece) {
    LoaderState state = mine;
    change(state);
    EXPECT_SHARD_ERROR(loader.resume(state), ErrorCode::invalid_argument, piece);
  };
  expect_refusal([](auto& s) { s.samples = 100; }, "100");
  expect_refusal([](auto& s) { s.seed = 3; }, "seed 3");
  expect_refusal([](auto& s) { s.order ^= 1; },
                 "another sequence: order, window, tail, partition, buckets or what is drawn");
  expect_refusal([](auto& s) { s.fingerprint ^= 1; }, "fingerprint");
  EXPECT_NE(mine.inputs, 0U);
  expect_refusal([](auto& s) { s.inputs ^= 1; }, "other images or labels");
  LoaderOptions padded = good();
  padded.tail = Tail::pad;
  EXPECT_SHARD_ERROR(loader.resume(Loader(*data_, make_host_device(1), padded).state()),
                     ErrorCode::invalid_argument, "tail");
  expect_refusal([](auto& s) { s.global_batch = 16; }, "global batch size 16");
  expect_refusal([](auto& s) { s.global_batch = 0; }, "global batch size 0");
  expect_refusal([](auto& s) { s.position = 7; }, "position 7 is not at a batch");
  expect_refusal([](auto& s) { s.position = 8 * 13; }, "position 104");
  LoaderState end = mine;
  end.position = 8 * 12;  // the end of the epoch is a place to stand at
  loader.resume(end);
  EXPECT_FALSE(loader.next());
}

// The samples are so few that earlier versions had another sequence of them.
TEST_F(LoaderOptionsTable, TakesAStateOfAnEarlierVersionBetweenEpochsOnly) {
  Loader loader(*data_, make_host_device(1), good());
  std::vector<std::uint64_t> shards;
  for (const ShardSummary& shard : data_->info().shards) shards.push_back(shard.samples);
  LoaderState earlier = loader.state();
  earlier.order = Order(shards, good()).earlier_digest();
  ASSERT_NE(earlier.order, loader.state().order);
  earlier.epoch = 3;
  for (const std::uint64_t batches : {1U, 5U, 11U}) {
    earlier.position = 8 * batches;
    EXPECT_SHARD_ERROR(loader.resume(earlier), ErrorCode::invalid_argument,
                       "an earlier version wrote the state in the middle of epoch 3");
  }
  earlier.position = 8 * 12;
  loader.resume(earlier);
  EXPECT_FALSE(loader.next());
  earlier.position = 0;
  loader.resume(earlier);
  EXPECT_EQ(loader.next()->epoch(), 3U);
}

// Memory of the new views is allocated after that of the old ones was freed, when the next epoch starts.
TEST_F(LoaderOptionsTable, SaysWhenThereIsNoMemoryForReplacedViewsAndTakesOthersThen) {
  const auto device = std::make_shared<LimitedDevice>(make_host_device(1), true);
  Loader loader(*data_, device, good());
  loader.start_epoch(0);
  ASSERT_TRUE(loader.next());
  const std::int64_t blocks = device->alive(DeviceCall::device);
  const std::uint64_t made = device->calls(DeviceCall::device);
  TransformOptions view = good().transform;
  view.flip = 0.5;
  loader.set_views(view);
  ASSERT_TRUE(loader.next()) << "the epoch goes on";
  EXPECT_EQ(device->calls(DeviceCall::device), made) << "nothing is allocated while it runs";
  device->refuse_from(DeviceCall::device, made + 3, ErrorCode::resource);
  for (int i = 0; i < 2; ++i) {
    EXPECT_SHARD_ERROR(loader.start_epoch(1), ErrorCode::resource, "the test refuses device memory");
    EXPECT_SHARD_ERROR(loader.next(), ErrorCode::resource, "the test refuses device memory");
    EXPECT_TRUE(loader.wait_ready(std::chrono::milliseconds(0)));
    EXPECT_EQ(device->alive(DeviceCall::device), 0);
    EXPECT_EQ(loader.stats().batches, 2U);
    EXPECT_EQ(loader.state().epoch, 1U);
  }
  loader.cancel();
  device->refuse_from(DeviceCall::device, 0, ErrorCode::resource);
  loader.start_epoch(1);
  EXPECT_TRUE(loader.next());
  EXPECT_EQ(device->alive(DeviceCall::device), blocks);
  loader.set_views(loader.options().transform);
  const std::uint64_t before = device->calls(DeviceCall::device);
  loader.start_epoch(2);
  EXPECT_EQ(device->calls(DeviceCall::device), before) << "the views are the same: nothing is made again";
}

}  // namespace
}  // namespace shard::testing
