// Ragged and text columns in a batch: padded with counts, or flat with offsets;
// whatever transport, order, rest of the epoch and slot of the ring.
#include <fmt/format.h>

#include <map>

#include "shard/loader/memory.hpp"
#include "support/device/step_device.hpp"
#include "support/expect_error.hpp"
#include "support/loader/loader_fixture.hpp"

namespace shard::testing {
namespace {

constexpr ColumnKind kRagged = ColumnKind::ragged;
constexpr std::uint64_t kMost = 5;  // rows of a sample

// Box k of sample i is (i, k, i + k, -i); crowd flag k is (i + k) mod 2.
std::uint64_t rows_of(std::uint64_t index) { return index * 7 % (kMost + 1); }
std::vector<float> boxes_of(std::uint64_t index, std::uint64_t most = kMost) {
  std::vector<float> boxes;
  for (std::uint64_t k = 0; k < std::min(rows_of(index), most); ++k) {
    const auto i = static_cast<float>(index);
    boxes.insert(boxes.end(), {i, static_cast<float>(k), i + static_cast<float>(k), -i});
  }
  return boxes;
}
std::vector<std::uint8_t> crowd_of(std::uint64_t index) {
  std::vector<std::uint8_t> flags;
  for (std::uint64_t k = 0; k < rows_of(index); ++k)
    flags.push_back(static_cast<std::uint8_t>((index + k) % 2));
  return flags;
}
std::string caption_of(std::uint64_t index) {
  return index % 3 == 0 ? "" : fmt::format("caption \xc3\xbc of {}", index);
}

void write_fields(const std::filesystem::path& folder, std::vector<std::uint64_t> shards,
                  std::uint64_t first = 0) {
  DatasetInfo info;
  info.spec = {DType::u8, Layout::nhwc, 3, 12, 10};
  info.normalization = kNormalization;
  info.fingerprint = info.source_digest = "0123456789abcdef";
  info.columns = {{"labels", DType::i64, {}},
                  {"boxes", DType::f32, {4}, kRagged},
                  {"caption", DType::u8, {}, ColumnKind::text},
                  {"crowd", DType::u8, {}, kRagged},
                  {"angle", DType::f32, {}}};
  const ShardWriterOptions options{info};
  std::uint64_t index = first;
  for (const std::uint64_t count : shards) {
    ShardWriter writer =
        ShardWriter::create(folder / fmt::format("shard-{}.safetensors", info.shards.size()), count, options);
    for (std::uint64_t i = 0; i < count; ++i, ++index) {
      const auto label = static_cast<std::int64_t>(1000 + index);
      const std::vector<float> boxes = boxes_of(index);
      const std::string caption = caption_of(index);
      const std::vector<std::uint8_t> crowd = crowd_of(index);
      const float angle = static_cast<float>(index) / 2;
      const std::vector<std::span<const std::byte>> rows{
          std::as_bytes(std::span(&label, 1)), std::as_bytes(std::span(boxes)),
          std::as_bytes(std::span(caption)), std::as_bytes(std::span(crowd)),
          std::as_bytes(std::span(&angle, 1))};
      writer.put(i, fmt::format("k{}", index), rows, sample_bytes(index, info.spec.size_bytes()));
    }
    info.shards.push_back(writer.publish());
  }
  info.inputs = info.samples();
  publish_file(folder / kDatasetFile, serialize_dataset(info));
}

// A tensor of the batch as it is on the device, which must also be in host memory.
template <class T>
std::vector<T> values_of(Device& device, Batch& batch, const char* name,
                         const std::vector<std::uint64_t>& shape) {
  const TensorView there = batch.column(name);
  const TensorView here = batch.host_column(name);
  EXPECT_EQ(there.shape, shape) << name;
  EXPECT_EQ(here.shape, shape) << name;
  std::vector<T> values(there.elements());
  auto stream = device.create_stream();
  batch.wait_on(*stream);
  const CopyItem item{reinterpret_cast<std::byte*>(values.data()), there.data, values.size() * sizeof(T)};
  if (!values.empty()) stream->copy_to_host({&item, 1});
  stream->synchronize();
  const bool same = values.empty() || std::memcmp(values.data(), here.data, values.size() * sizeof(T)) == 0;
  EXPECT_TRUE(same) << name;
  return values;
}

// Boxes padded to `most` rows, crowd flags flat.
void expect_fields(Device& device, Batch& batch, std::uint64_t most) {
  const std::uint64_t n = batch.size();
  std::vector<float> padded;
  std::vector<std::int64_t> counts;
  std::vector<std::uint8_t> flags;
  std::vector<std::int64_t> offsets{0};
  std::vector<std::string> captions;
  for (const std::uint64_t id : batch.ids()) {
    const std::vector<float> boxes = boxes_of(id, most);
    padded.insert(padded.end(), boxes.begin(), boxes.end());
    padded.resize(padded.size() + 4 * most - boxes.size());
    counts.push_back(static_cast<std::int64_t>(boxes.size() / 4));
    const std::vector<std::uint8_t> crowd = crowd_of(id);
    flags.insert(flags.end(), crowd.begin(), crowd.end());
    offsets.push_back(static_cast<std::int64_t>(flags.size()));
    captions.push_back(caption_of(id));
  }
  EXPECT_EQ(values_of<float>(device, batch, "boxes", {n, most, 4}), padded);
  EXPECT_EQ(values_of<std::int64_t>(device, batch, "boxes_counts", {n}), counts);
  EXPECT_EQ(values_of<std::uint8_t>(device, batch, "crowd", {flags.size()}), flags);
  EXPECT_EQ(values_of<std::int64_t>(device, batch, "crowd_offsets", {n + 1}), offsets);
  EXPECT_EQ(batch.texts("caption"), captions);
  for (std::size_t i = 0; i < n; ++i) {
    EXPECT_EQ(batch.host_column("angle").as<float>()[i], static_cast<float>(batch.ids()[i]) / 2);
    EXPECT_EQ(batch.labels()[i], static_cast<std::int64_t>(1000 + batch.ids()[i]));
  }
}

class Fields : public ::testing::Test {
 protected:
  void SetUp() override { write_fields(dir_.path(), {37, 20, 41, 3}); }
  LoaderOptions options(TransportKind transport = TransportKind::automatic) const {
    LoaderOptions options;
    options.batch_size = 16;
    options.transport = transport;
    options.prefetch = 2;
    options.ragged["crowd"].flat = true;
    return options;
  }
  TempDir dir_;
  std::shared_ptr<Device> device_ = make_host_device(2);
};

TEST_F(Fields, AreThoseOfTheSamplesWithEveryTransportAndRestOfAnEpoch) {
  for (const TransportKind transport : all_transports(dir_.path())) {
    for (const Tail tail : {Tail::drop, Tail::pad, Tail::short_}) {
      SCOPED_TRACE(to_string(transport));
      LoaderOptions with = options(transport);
      with.tail = tail;
      Loader loader(Dataset::open(dir_.path()), device_, with);
      std::uint64_t samples = 0;
      for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
        for (Batch& batch : loader.epoch(epoch)) {
          expect_fields(*device_, batch, kMost);
          samples += batch.size();
        }
      }
      EXPECT_EQ(samples, 2U * (tail == Tail::drop ? 96 : tail == Tail::pad ? 112 : 101));
    }
  }
}

TEST_F(Fields, AreThereOnADeviceOfItsOwnMemory) {
  auto device = std::make_shared<StepDevice>();
  device->run_freely(1);
  Loader loader(Dataset::open(dir_.path()), device, options(TransportKind::staged));
  for (Batch& batch : loader.epoch(0)) expect_fields(*device, batch, kMost);
  EXPECT_EQ(device->races(), std::vector<std::string>{});
}

TEST_F(Fields, KeepTheFirstRowsUpToALimit) {
  LoaderOptions with = options();
  with.ragged["boxes"].max_rows = 2;
  Loader loader(Dataset::open(dir_.path()), device_, with);
  EXPECT_EQ(loader.options().ragged.at("boxes").max_rows, 2U);
  EXPECT_EQ(loader.options().ragged.at("crowd").max_rows, kMost);
  for (Batch& batch : loader.epoch(0)) expect_fields(*device_, batch, 2);
  with.ragged["boxes"].max_rows = 9;
  Loader wider(Dataset::open(dir_.path()), device_, with);
  for (Batch& batch : wider.epoch(0)) expect_fields(*device_, batch, 9);
}

TEST_F(Fields, OfSelectionsAndSeveralDataSetsAreTheirs) {
  const TempDir more;
  write_fields(more.path(), {11}, 101);  // samples 101 to 111
  const Dataset both = Dataset::open({dir_.path(), more.path()});
  Loader loader(both, device_, options());
  for (Batch& batch : loader.epoch(0)) expect_fields(*device_, batch, kMost);
  std::vector<std::uint64_t> few{3, 40, 90, 108};
  const Dataset part = both.select(Selection::indices(few));
  LoaderOptions with = options();
  with.batch_size = 4;
  Loader chosen(part, device_, with);
  for (Batch& batch : chosen.epoch(0)) {
    for (std::size_t i = 0; i < 4; ++i) {
      const std::uint64_t id = few[batch.ids()[i]];
      EXPECT_EQ(batch.texts("caption")[i], caption_of(id));
      EXPECT_EQ(batch.host_column("boxes_counts").as<std::int64_t>()[i],
                static_cast<std::int64_t>(rows_of(id)));
    }
  }
}

TEST_F(Fields, TakeTheMemoryThatThePlanNames) {
  const Dataset data = Dataset::open(dir_.path());
  const LoaderMemory planned = plan_memory(data, *device_, options());
  Loader loader(data, device_, options());
  EXPECT_EQ(loader.stats().device_bytes, planned.device_bytes);
  LoaderOptions with = options();
  with.ragged["boxes"].max_rows = 1000;
  EXPECT_GE(plan_memory(data, *device_, with).device_bytes, planned.device_bytes + 3 * 16 * 995 * 16);
}

TEST_F(Fields, ThatCannotBeDeliveredAreRefused) {
  const Dataset data = Dataset::open(dir_.path());
  const auto refused = [&](const std::function<void(LoaderOptions&)>& change, const char* why) {
    LoaderOptions with = options();
    change(with);
    EXPECT_SHARD_ERROR(Loader(data, device_, with), ErrorCode::invalid_argument, why);
  };
  refused([](LoaderOptions& o) { o.ragged["angle"]; }, "option ragged names \"angle\"");
  refused([](LoaderOptions& o) { o.ragged["caption"]; }, "option ragged names \"caption\"");
  refused([](LoaderOptions& o) { o.ragged["none"]; }, "option ragged names \"none\"");
  refused([](LoaderOptions& o) { o.ragged["boxes"].max_rows = std::uint64_t{1} << 60; }, "lower max_rows");
  Loader loader(data, device_, options());
  Batch batch = loader.next().value();
  EXPECT_SHARD_ERROR(batch.column("caption"), ErrorCode::unsupported, "use texts()");
  EXPECT_SHARD_ERROR(
      batch.column("no"), ErrorCode::not_found,
      "no column \"no\"; it has \"labels\", \"boxes\", \"boxes_counts\", \"crowd\", \"crowd_offsets\"");
  EXPECT_SHARD_ERROR(batch.texts("boxes"), ErrorCode::unsupported, "not text");
  EXPECT_SHARD_ERROR(batch.texts("no"), ErrorCode::not_found, "no column");
}

TEST_F(Fields, TwoTensorsOfOneNameAreRefused) {
  const TempDir dir;
  ShardWriterOptions options;
  options.spec = {DType::u8, Layout::nhwc, 3, 4, 4};
  options.fingerprint = "0123456789abcdef";
  options.columns = {
      {"labels", DType::i64, {}}, {"x", DType::f32, {}, kRagged}, {"x_counts", DType::f32, {}}};
  ShardWriter writer = ShardWriter::create(dir.path() / "s", 1, options);
  const std::vector<std::byte> zeros(8);
  const std::vector<std::span<const std::byte>> rows{zeros, zeros, std::span(zeros).first(4)};
  writer.put(0, "k", rows, std::vector<std::byte>(48));
  writer.publish();
  LoaderOptions with;
  with.batch_size = 1;
  EXPECT_SHARD_ERROR(Loader(Dataset::open(dir.path() / "s"), device_, with), ErrorCode::invalid_argument,
                     "would have the name \"x_counts\"");
  with.ragged["x"].flat = true;
  EXPECT_NO_THROW(Loader(Dataset::open(dir.path() / "s"), device_, with));
}

}  // namespace
}  // namespace shard::testing
