// The same seed gives the same batches: random data sets, orders and transforms, each held against a plain
// reference and then delivered in many ways: transports, threads, depths, world sizes and points of resume.
// One body for every device.
#pragma once

#include <array>
#include <cstdlib>
#include <map>
#include <numeric>
#include <optional>

#include "fields/views.hpp"
#include "support/expect_error.hpp"
#include "support/loader/loader_fixture.hpp"
#include "support/rounds.hpp"
#include "support/transform/random_program.hpp"
#include "support/transform/random_work.hpp"
#include "support/transform/reference_transform.hpp"
#include "transform/augment/host_augment.hpp"

namespace shard::testing {

inline constexpr std::array<TransportKind, 4> kTransports{TransportKind::mapped, TransportKind::staged,
                                                          TransportKind::resident, TransportKind::direct};

// A small data set of a random kind.
inline DatasetShape random_shape(Random& random) {
  DatasetShape shape;
  shape.spec.dtype = random.one_of({DType::u8, DType::u8, DType::u8, DType::f16, DType::bf16, DType::f32});
  shape.spec.layout = random.one_of({Layout::nchw, Layout::nhwc});
  shape.spec.channels = random.one_of({1U, 2U, 3U, 3U, 3U, 4U});
  shape.spec.height = random.between(1, 20);
  shape.spec.width = random.between(1, 24);
  const std::uint32_t codec = random.between(0, 5);
  if (codec == 0) shape.codec = {CodecSpec::Kind::zstd, static_cast<int>(random.between(1, 4))};
  if (codec == 1 || codec == 2) {
    shape.codec = {CodecSpec::Kind::packed};
    shape.spec.width = random.between(1, 80);  // of up to three strips
    shape.spec.height = random.between(1, 70);
  }
  shape.shards.resize(random.between(1, 9));
  for (std::uint64_t& samples : shape.shards) samples = random.between(1, 17);
  return shape;
}

// One whose samples only version 2 of the format has.
inline DatasetShape random_wide_shape(Random& random) {
  DatasetShape shape = random_shape(random);
  SampleSpec& spec = shape.spec;
  spec.height = random.between(1, 12);
  spec.width = random.between(1, 14);
  switch (random.between(0, 4)) {
    case 0:
      spec.dtype = DType::u16;
      break;
    case 1:
      spec.dtype = DType::u16;
      spec.channels = 13;
      break;
    case 2:
      spec.channels = random.between(5, 20);
      break;
    case 3:
      spec = {random.one_of({DType::u8, DType::u16, DType::f16}), spec.layout, 4096, 2, random.between(1, 3)};
      break;
    default: {
      std::vector<std::uint64_t> axes;
      for (std::uint32_t i = random.one_of({1U, 2U, 4U}); i > 0; --i) axes.push_back(random.between(1, 6));
      spec = tensor_spec(random.one_of({DType::f16, DType::f32, DType::i64, DType::u8}), axes);
    }
  }
  if (shape.codec.kind == CodecSpec::Kind::packed) shape.codec = {CodecSpec::Kind::zstd, 1};
  return shape;
}

inline TransformOptions random_transform(Random& random, const DatasetInfo& info) {
  TransformOptions options;
  const SampleSpec& stored = info.spec;
  if (stored.is_tensor()) {
    if (stored.dtype == DType::f16 || stored.dtype == DType::f32)
      options.dtype = random.one_of({DType::f16, DType::bf16, DType::f32});
    return options;
  }
  const bool bytes = stored.dtype == DType::u8 || stored.dtype == DType::u16 ||
                     (info.codec.kind == CodecSpec::Kind::packed && !info.mixed_codecs);
  options.crop =
      random.one_of({CropKind::none, CropKind::center, CropKind::random, CropKind::random_resized});
  if (options.crop == CropKind::center || options.crop == CropKind::random) {
    options.crop_height = random.between(1, stored.height);
    options.crop_width = random.between(1, stored.width);
  } else if (options.crop == CropKind::random_resized) {
    // At most 32 times smaller than what is stored.
    options.crop_height = std::max(random.between(1, 24), (stored.height + 31) / 32);
    options.crop_width = std::max(random.between(1, 24), (stored.width + 31) / 32);
    options.scale = {random.between(1, 10) / 10.0, 1.0};
    options.ratio = {random.between(5, 10) / 10.0, random.between(10, 20) / 10.0};
  }
  options.flip = random.one_of({0.0, 0.5, 1.0});
  if (random.coin()) options.layout = random.one_of({Layout::nchw, Layout::nhwc});
  if (random.coin()) options.dtype = random.one_of({DType::f16, DType::bf16, DType::f32});
  const DType whole = stored.dtype == DType::u16 ? DType::u16 : DType::u8;
  if (bytes && random.between(0, 4) == 0) options.dtype = whole;
  if (options.dtype.value_or(stored.dtype) != whole && random.coin()) {
    options.normalization =
        bytes ? Normalization{{0.1F, 0.2F, 0.3F}, {0.5F, 0.25F, 2.0F}} : info.normalization;
    if (stored.channels > 4 && !bytes) options.normalization.reset();
    if (stored.channels > 4 && bytes) {
      options.normalization->mean.resize(stored.channels, 0.7F);
      options.normalization->std.resize(stored.channels, 0.3F);
    }
  }
  if (bytes && stored.dtype != DType::u16 && random.coin()) {
    const SampleSpec pixels = augment::pixels_of(plan_transform(info, options).delivered);
    if (pixels.height >= 16 && pixels.width >= 16) options.operations = random_operations(random, pixels, 6);
  }
  return options;
}

// What all deliveries of one round have in common. The global batch is options.batch_size.
struct Setting {
  Dataset data;
  LoaderOptions options;
  std::uint64_t epoch = 0;
  std::uint32_t world = 1;  // by_shard: the same for all deliveries

  std::uint64_t global_batch() const { return options.batch_size; }
  bool by_shard() const { return options.partition == Partition::by_shard; }
  OrderOptions order(std::uint32_t of_world, std::uint32_t rank) const {
    OrderOptions order = options;
    order.batch_size = global_batch() / of_world;
    order.world_size = of_world;
    order.rank = rank;
    return order;
  }
};

// Part of the data set, twice the data set, or all of it.
inline Dataset random_view(Random& random, const Dataset& data) {
  const std::uint32_t kind = random.between(0, 7);
  if (kind == 0) return Dataset::concat(std::vector{data, data});
  if (kind > 3) return data;
  const std::uint32_t one_of = random.between(1, 5);
  SampleBits bits(data.size());
  for (std::uint64_t i = 0; i < data.size(); ++i)
    if (random.between(1, one_of) == 1) bits.set(i);
  bits.set(random.between(0, static_cast<std::uint32_t>(data.size()) - 1));
  return data.select(Selection::bits(std::move(bits)));
}

inline std::shared_ptr<const Sampling> random_sampling(Random& random, std::uint64_t samples) {
  switch (random.between(0, 4)) {
    case 0:
      return Sampling::uniform(samples, random.coin());
    case 1: {
      std::vector<double> weights(samples);
      for (double& weight : weights) weight = random.between(1, 9);
      return Sampling::weighted(weights, random.coin());
    }
    case 2: {
      const std::uint64_t first = random.between(0, static_cast<std::uint32_t>(samples) - 1);
      return Sampling::mix(std::vector<Sampling::Part>{{first, first > 0 ? 0.3 : 0}, {samples - first, 0.7}});
    }
    case 3: {
      std::vector<std::uint32_t> groups(samples);
      std::vector<double> proportions(random.between(1, 5), 1.0);
      for (std::uint32_t& group : groups)
        group = random.between(0, static_cast<std::uint32_t>(proportions.size()) - 1);
      for (std::uint32_t g = 0; g < proportions.size(); ++g)
        if (std::find(groups.begin(), groups.end(), g) == groups.end()) proportions[g] = 0;
      return Sampling::grouped(groups, proportions);
    }
    default:
      return nullptr;
  }
}

inline Setting random_setting(Random& random, Dataset data) {
  Setting setting{std::move(data), {}};
  OrderOptions& order = setting.options;
  order.order = random.one_of({OrderMode::sequential, OrderMode::shuffle, OrderMode::windowed});
  order.window_shards = random.between(1, 4);
  order.tail = random.one_of({Tail::drop, Tail::pad, Tail::wrap, Tail::short_});
  order.seed = random.coin() ? random.between(0, 1000) : ~std::uint64_t{0} - random.between(0, 1000);
  order.batch_size = random.one_of({8U, 16U});
  if (setting.data.size() < order.batch_size && order.tail == Tail::drop) order.tail = Tail::pad;
  const auto shards = static_cast<std::uint32_t>(setting.data.info().shards.size());
  const auto samples = static_cast<std::uint32_t>(setting.data.size());
  if (order.order == OrderMode::shuffle && random.coin()) {
    order.sampling = random_sampling(random, samples);
    if (random.coin())
      order.samples_per_epoch = random.between(
          order.tail == Tail::drop ? static_cast<std::uint32_t>(order.batch_size) : 1, samples);
    order.repeats = random.one_of({1U, 1U, 2U, 4U});
  } else if (random.between(0, 3) == 0) {
    order.partition = Partition::by_shard;
    while (setting.world * 2 <= std::min(shards, 8U) && random.coin()) setting.world *= 2;
  }
  setting.options.transform = random_transform(random, setting.data.info());
  for (std::uint32_t views = random.one_of({0U, 0U, 1U, 3U}); views > 0; --views)
    setting.options.further_views.push_back(random_transform(random, setting.data.info()));
  setting.epoch = random.between(0, 5);
  return setting;
}

// The bytes that normalised values were made of; of several that give a value the lowest, as codec packed has
// them.
inline std::vector<std::byte> bytes_of(const DatasetInfo& info, const std::vector<std::byte>& values) {
  const SampleSpec& spec = info.spec;
  const ValueMap map = make_value_map(spec.dtype, info.normalization, spec.channels);
  std::vector<std::byte> bytes(spec.elements());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::size_t channel =
        spec.layout == Layout::nhwc ? i % spec.channels : i / (std::size_t{spec.height} * spec.width);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &values[i * size_bytes(spec.dtype)], size_bytes(spec.dtype));
    const auto& table = map.bits[channel];
    bytes[i] = static_cast<std::byte>(std::find(table.begin(), table.end(), bits) - table.begin());
  }
  return bytes;
}

// reference_transform(), with the operations between two of them.
inline std::vector<std::byte> reference_augment(const Setting& setting, std::size_t view,
                                                const std::vector<std::uint64_t>& draws, TransformWork work) {
  const std::vector<Operation>& operations = view_options(setting.options, view).operations;
  if (operations.empty()) return reference_transform(work);
  TransformWork to_pixels = work;
  to_pixels.delivered = augment::pixels_of(work.delivered);
  to_pixels.normalize = false;
  std::vector<std::byte> pixels = reference_transform(to_pixels);
  const std::size_t size = to_pixels.delivered.size_bytes();
  std::vector<const std::byte*> sources;
  for (std::size_t row = 0; row < draws.size(); ++row) {
    std::vector<Instruction> program;
    draw_program(to_pixels.delivered, operations, setting.options.seed, setting.epoch, draws[row],
                 static_cast<std::uint32_t>(view), program);
    run_program(to_pixels.delivered, program, reinterpret_cast<std::uint8_t*>(pixels.data() + row * size));
    sources.push_back(pixels.data() + row * size);
  }
  const std::vector<SampleCrop> whole(draws.size(),
                                      {0, 0, work.delivered.width, work.delivered.height, false});
  work.stored = to_pixels.delivered;
  work.sources = sources;
  work.crops = whole;
  return reference_transform(work);
}

// One rank's batches of an epoch by the plainest means: Order, ShardReader::read, loops over the arithmetic.
inline std::vector<Seen> reference_epoch(const Setting& setting, std::uint32_t world, std::uint32_t rank) {
  const DatasetInfo& info = setting.data.info();
  std::vector<std::uint64_t> shard_samples;
  for (const ShardSummary& shard : info.shards) shard_samples.push_back(shard.samples);
  const Order order(shard_samples, setting.order(world, rank));
  std::vector<Seen> epoch(order.batches());
  for (std::uint64_t i = 0; i < order.batches(); ++i) {
    Seen& seen = epoch[i];
    BatchIndices indices;
    order.batch(setting.epoch, i, indices);
    seen.epoch = setting.epoch;
    seen.index = i;
    seen.ids = indices.samples;
    seen.mask = indices.mask;
    std::vector<std::vector<std::byte>> stored;
    const std::size_t view = i % view_count(setting.options);
    const TransformOptions& transform = view_options(setting.options, view);
    TransformWork work = plan_transform(info, transform);
    std::vector<SampleCrop> crops;
    std::vector<const std::byte*> sources;
    for (std::size_t row = 0; row < seen.ids.size(); ++row) {
      const std::uint64_t id = seen.ids[row];
      const Dataset::Location at = setting.data.locate(id);
      const ShardReader& shard = setting.data.shard(at.shard);
      seen.labels.push_back(setting.data.label(id));
      stored.emplace_back(info.spec.size_bytes());
      shard.images().read(at.sample, stored.back());
      if (work.stored.dtype != info.spec.dtype) stored.back() = bytes_of(info, stored.back());
      crops.push_back(draw_crop(info.spec, transform, crop_seed(setting.options.seed, view), setting.epoch,
                                indices.draws[row]));
      sources.push_back(stored.back().data());
    }
    work.crops = crops;
    work.sources = sources;
    seen.images = reference_augment(setting, view, indices.draws, work);
  }
  return epoch;
}

// Rank `rank`'s rows of a global batch.
inline Seen slice_of(const Seen& global, std::uint32_t world, std::uint32_t rank) {
  const auto part = [&](const auto& all) {
    // A short batch is divided as evenly as can be.
    const std::size_t rows = global.ids.size();
    const std::size_t row = all.size() / rows;
    const auto begin = [&](std::size_t of) {
      return all.begin() + static_cast<std::ptrdiff_t>(of * rows / world * row);
    };
    return std::decay_t<decltype(all)>(begin(rank), begin(rank + std::size_t{1}));
  };
  return {global.epoch,      global.index,        part(global.ids),
          part(global.mask), part(global.labels), part(global.images)};
}

// Distance of two values in steps of their type; for u8, levels.
inline std::int64_t steps_between(DType dtype, const std::byte* a, const std::byte* b) {
  if (std::memcmp(a, b, size_bytes(dtype)) == 0) return 0;
  const auto rank_of = [&](const std::byte* bytes) -> std::int64_t {
    std::uint32_t bits = 0;
    std::memcpy(&bits, bytes, size_bytes(dtype));
    if (dtype == DType::u8) return bits;
    const std::uint32_t sign = dtype == DType::f32 ? 0x80000000U : 0x8000U;
    const auto magnitude = static_cast<std::int64_t>(bits & (sign - 1));
    return (bits & sign) != 0 ? -magnitude : magnitude;
  };
  return std::abs(rank_of(a) - rank_of(b));
}

// Everything equal; values at most `steps` apart where they were computed.
inline ::testing::AssertionResult same(const Seen& got, const Seen& expected, const SampleSpec& delivered,
                                       std::int64_t steps) {
  const auto differ = [&](const char* what) {
    return ::testing::AssertionFailure() << what << " of batch " << expected.index << " differ";
  };
  if (got.epoch != expected.epoch || got.index != expected.index)
    return ::testing::AssertionFailure() << "batch " << got.index << " of epoch " << got.epoch
                                         << " in place of " << expected.index << " of " << expected.epoch;
  if (got.ids != expected.ids) return differ("ids");
  if (got.mask != expected.mask) return differ("masks");
  if (got.labels != expected.labels) return differ("labels");
  if (got.images.size() != expected.images.size()) return differ("sizes");
  if (got.images == expected.images) return ::testing::AssertionSuccess();
  const std::size_t element = size_bytes(delivered.dtype);
  for (std::size_t at = 0; at < got.images.size(); at += element) {
    const std::int64_t apart = steps_between(delivered.dtype, &got.images[at], &expected.images[at]);
    if (apart > steps)
      return ::testing::AssertionFailure()
             << "value " << at / element % delivered.elements() << " of row " << at / delivered.size_bytes()
             << " of batch " << expected.index << " is " << apart << " steps of its type off";
  }
  return ::testing::AssertionSuccess();
}

struct DeviceUnderTest {
  const char* name;
  // A device for one loader; null: there is none on this machine.
  std::shared_ptr<Device> (*make)(Random& random);
  // After a loader on it is gone: what else must hold.
  void (*check)(Device& device);
  std::int64_t steps;  // how far computed values may be from the reference
  std::uint64_t rounds;
  std::uint64_t rounds_sanitized;
};
inline void PrintTo(const DeviceUnderTest& device, std::ostream* out) { *out << device.name; }

class SameBatches : public ::testing::TestWithParam<DeviceUnderTest> {
 protected:
  void SetUp() override {
    Random random(0);
    if (!GetParam().make(random)) GTEST_SKIP() << "no such device on this machine";
  }

  Dataset dataset(Random& random) {
    const std::uint32_t number = random.between(0, 33);  // from 24 on: wide samples
    std::optional<Dataset>& data = datasets_[number];
    if (!data) {
      Random own(1000 + number);  // the same data set whichever round asks first
      const auto folder = dir_.path() / std::to_string(number);
      std::filesystem::create_directory(folder);
      DatasetShape shape = number < 24 ? random_shape(own) : random_wide_shape(own);
      write_dataset(folder, shape);
      data = Dataset::open(folder);
      if (number % 4 == 0) {  // and one with another codec behind it
        const auto second = dir_.path() / (std::to_string(number) + "b");
        std::filesystem::create_directory(second);
        shape.shards.resize(own.between(1, 3), 9);
        if (shape.codec.kind != CodecSpec::Kind::packed)
          shape.codec.kind =
              shape.codec.kind == CodecSpec::Kind::none ? CodecSpec::Kind::zstd : CodecSpec::Kind::none;
        write_dataset(second, shape);
        data = Dataset::concat(std::vector{*data, Dataset::open(second)});
      }
    }
    return *data;
  }

  // How a leg delivers: everything that must not matter.
  LoaderOptions random_delivery(Random& random, const Setting& setting, TransportKind kind) const {
    LoaderOptions options = setting.options;
    const std::uint64_t stored_bytes = setting.data.info().spec.size_bytes() + 32;  // or its packed frame
    options.transport = kind;
    options.threads = random.between(1, 4);
    options.prefetch = random.between(1, 5);
    options.together = random.one_of({0U, 1U, 2U, 3U, 7U});
    options.verify = random.one_of({Verify::never, Verify::first_epoch, Verify::always});
    const std::vector<ShardSummary>& shards = setting.data.info().shards;
    std::uint64_t largest = 0;
    for (const ShardSummary& shard : shards) largest = std::max(largest, shard.size_bytes);
    if (kind == TransportKind::mapped) {  // shards come and go; samples may not be staged
      if (setting.options.order != OrderMode::shuffle && random.coin())
        options.memory.registered_bytes = largest * random.between(1, 3);
      else if (random.coin())
        options.memory.pinned_bytes = stored_bytes;
    }
    if (kind == TransportKind::resident)  // little, or more than all
      options.memory.resident_bytes = stored_bytes * random.one_of({1U, 7U, 1000U});
    return options;
  }

  // Each rank's loader of a world, as `options` say. Empty: the platform refuses this transport.
  struct Rank {
    std::shared_ptr<Device> device;
    std::unique_ptr<Loader> loader;
  };
  std::vector<Rank> open(Random& random, const Setting& setting, const LoaderOptions& options,
                         std::uint32_t world) {
    std::vector<Rank> ranks;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      LoaderOptions own = options;
      static_cast<OrderOptions&>(own) = setting.order(world, rank);
      auto device = GetParam().make(random);
      try {
        ranks.push_back({device, std::make_unique<Loader>(setting.data, device, own)});
      } catch (const Error& error) {
        const DatasetInfo& info = setting.data.info();
        const bool zstd = info.codec.kind == CodecSpec::Kind::zstd || info.mixed_codecs;
        const bool may_refuse = options.transport == TransportKind::direct ||
                                (options.transport == TransportKind::mapped && zstd);
        EXPECT_TRUE(may_refuse && error.code() == ErrorCode::unsupported) << error.what();
        ++refused_[options.transport];
        return {};
      }
    }
    ++ran_[options.transport];
    return ranks;
  }

  // Takes `count` batches from every rank and holds them against the reference.
  void take(std::vector<Rank>& ranks, std::uint64_t first, std::uint64_t count) {
    const auto world = static_cast<std::uint32_t>(ranks.size());
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      for (std::uint64_t i = first; i < first + count; ++i) {
        const SampleSpec delivered =
            ranks[rank].loader->delivered(i % view_count(ranks[rank].loader->options()));
        auto batch = ranks[rank].loader->next();
        ASSERT_TRUE(batch) << "rank " << rank << " of " << world << ": the epoch ends before batch " << i;
        const Seen expected =
            expected_.size() == 1 ? slice_of(expected_[0][i], world, rank) : expected_[rank][i];
        ASSERT_TRUE(same(look(*ranks[rank].device, *batch), expected, delivered, GetParam().steps))
            << "rank " << rank << " of " << world;
      }
    }
  }
  void expect_end(std::vector<Rank>& ranks) {
    for (Rank& rank : ranks) EXPECT_FALSE(rank.loader->next()) << "more batches than the reference";
  }
  void close(std::vector<Rank>& ranks) {
    for (Rank& rank : ranks) {
      rank.loader.reset();
      GetParam().check(*rank.device);
    }
    ranks.clear();
  }

  std::uint32_t random_world(Random& random, const Setting& setting) {
    return setting.by_shard() ? setting.world : random.one_of({1U, 2U, 4U, 8U});
  }

  // One delivery of the setting's epoch, broken off and resumed in another one now and then.
  void deliver(Random& random, const Setting& setting, TransportKind kind) {
    const std::uint64_t batches = expected_[0].size();
    auto ranks = open(random, setting, random_delivery(random, setting, kind), random_world(random, setting));
    if (ranks.empty()) return;
    SCOPED_TRACE(std::string(to_string(kind)) + ", world " + std::to_string(ranks.size()));
    for (Rank& rank : ranks) {
      if (random.coin())  // some of another epoch before: slots, resident samples and order have a past
        for (std::uint32_t i = random.between(1, 6); i > 0; --i) rank.loader->next();
      rank.loader->start_epoch(setting.epoch);
    }
    const std::uint64_t until =
        random.coin() ? random.between(0, static_cast<std::uint32_t>(batches)) : batches;
    take(ranks, 0, until);
    if (HasFatalFailure()) return;
    if (until == batches) {
      expect_end(ranks);
      return close(ranks);
    }
    const std::string state = ranks[0].loader->state().serialize();
    for (Rank& rank : ranks) EXPECT_EQ(rank.loader->state().serialize(), state);
    close(ranks);
    TransportKind other = random.one_of({TransportKind::staged, TransportKind::resident, kind});
    auto resumed =
        open(random, setting, random_delivery(random, setting, other), random_world(random, setting));
    ASSERT_FALSE(resumed.empty());
    SCOPED_TRACE("resumed at batch " + std::to_string(until) + " by " + std::string(to_string(other)) +
                 ", world " + std::to_string(resumed.size()));
    for (Rank& rank : resumed) rank.loader->resume(LoaderState::parse(state));
    take(resumed, until, batches - until);
    if (HasFatalFailure()) return;
    expect_end(resumed);
    close(resumed);
  }

  void run_round(std::uint64_t seed) {
    Random random(seed);
    const Setting setting = random_setting(random, random_view(random, dataset(random)));
    expected_.clear();
    for (std::uint32_t rank = 0; rank < setting.world; ++rank)
      expected_.push_back(reference_epoch(setting, setting.world, rank));
    for (TransportKind kind : kTransports) {
      deliver(random, setting, kind);
      if (HasFatalFailure()) return;
    }
  }

  TempDir dir_;
  std::map<std::uint32_t, std::optional<Dataset>> datasets_;
  std::vector<std::vector<Seen>> expected_;  // one: of the global batches; by_shard: of each rank
  std::map<TransportKind, int> ran_;
  std::map<TransportKind, int> refused_;
};

TEST_P(SameBatches, ForEveryTransportThreadCountDepthWorldSizeAndPointOfResume) {
  const std::uint64_t count = rounds(GetParam().rounds, GetParam().rounds_sanitized);
  for (std::uint64_t i = 0; i < count && !HasFailure(); ++i) {
    SCOPED_TRACE("SHARD_TEST_ROUNDS=1 SHARD_TEST_SEED=" + std::to_string(first_seed() + i));
    run_round(first_seed() + i);
  }
  std::cout << count << " settings;";
  for (TransportKind kind : kTransports)
    std::cout << ' ' << to_string(kind) << ": " << ran_[kind] << " deliveries, " << refused_[kind]
              << " refused;";
  std::cout << std::endl;
  if (count < 20) return;
  for (TransportKind kind : {TransportKind::mapped, TransportKind::staged, TransportKind::resident})
    EXPECT_GT(ran_[kind], 0) << to_string(kind);
}

}  // namespace shard::testing
