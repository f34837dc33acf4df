// Image fields, boxes and keypoints in a batch: the same for every device and transport, ordered before the
// consumer and after the batch before, and in the memory that was planned.
#include <fmt/format.h>

#include <map>

#include "shard/loader/geometry.hpp"
#include "shard/loader/memory.hpp"
#include "support/device/step_device.hpp"
#include "support/expect_error.hpp"
#include "support/loader/loader_fixture.hpp"

namespace shard::testing {
namespace {

constexpr SampleSpec kImage{DType::u8, Layout::nhwc, 3, 12, 10};
constexpr std::uint64_t kRows = 8;

std::vector<FieldSpec> image_fields(CodecSpec::Kind codec) {
  const Normalization none{{0, 0, 0}, {1, 1, 1}};
  FieldSpec mask{"mask", FieldRole::mask, {DType::u8, Layout::nhwc, 1, 12, 10}, none, {codec, 3}};
  FieldSpec odd{"odd", FieldRole::image, {DType::u8, Layout::nchw, 1, 5, 5}, none, {}};
  FieldSpec depth{"depth", FieldRole::image, {DType::u16, Layout::nchw, 1, 12, 10}, none, {}};
  return {mask, odd, depth};
}

// Few values, so that packing pays.
std::vector<std::byte> mask_bytes(std::uint64_t index) {
  std::vector<std::byte> bytes = sample_bytes(index + 1000, 120);
  for (std::byte& byte : bytes) byte &= std::byte{7};
  return bytes;
}

void write_targets(const std::filesystem::path& folder, CodecSpec::Kind images, CodecSpec::Kind masks) {
  DatasetInfo info;
  info.spec = kImage;
  info.normalization = kNormalization;
  info.codec = {images, 3};
  info.fingerprint = info.source_digest = "0123456789abcdef";
  info.columns = {{"labels", DType::i64, {}}, {"boxes", DType::f32, {4}, ColumnKind::ragged}};
  info.fields = image_fields(masks);
  const ShardWriterOptions options{info};
  std::uint64_t index = 0;
  for (const std::uint64_t count : {20U, 13U, 15U}) {
    ShardWriter writer =
        ShardWriter::create(folder / fmt::format("shard-{}.safetensors", info.shards.size()), count, options);
    for (std::uint64_t i = 0; i < count; ++i, ++index) {
      const auto label = static_cast<std::int64_t>(index);
      std::vector<float> boxes;
      for (std::uint64_t k = 0; k < index % 4; ++k)
        boxes.insert(boxes.end(), {static_cast<float>(k), 1, static_cast<float>(4 + k), 9});
      const std::vector<std::span<const std::byte>> rows{std::as_bytes(std::span(&label, 1)),
                                                         std::as_bytes(std::span(boxes))};
      const std::vector<std::vector<std::byte>> fields{mask_bytes(index), sample_bytes(index + 2000, 25),
                                                       sample_bytes(index + 3000, 240)};
      const std::vector<SampleValues> views(fields.begin(), fields.end());
      writer.put(i, fmt::format("k{}", index), rows, sample_bytes(index, kImage.size_bytes()), views);
    }
    info.shards.push_back(writer.publish());
  }
  info.inputs = info.samples();
  publish_file(folder / kDatasetFile, serialize_dataset(info));
}

LoaderOptions with_targets(TransportKind transport) {
  LoaderOptions options;
  options.batch_size = kRows;
  options.prefetch = 2;
  options.threads = 2;
  options.transport = transport;
  options.fields["mask"].fill = 255;
  options.fields["odd"].sampling = FieldSampling::stored;
  options.fields["depth"].sampling = FieldSampling::bilinear;
  options.boxes["boxes"] = {};
  options.correspondence = true;
  return options;
}

LoaderOptions with_views(TransportKind transport) {
  LoaderOptions options = with_targets(transport);
  options.transform.crop = CropKind::random_resized;
  options.transform.crop_height = options.transform.crop_width = 8;
  options.transform.flip = 0.5;
  options.transform.operations = {ops::Affine{{-90, 90}, {0.2, 0.2}}, ops::Invert{}, ops::PaddedCrop{2}};
  options.further_views.resize(2);
  options.further_views[0].crop = CropKind::random;
  options.further_views[0].crop_height = 6;
  options.further_views[0].crop_width = 7;
  options.further_views[1].resize = ResizeKind::letterbox;
  options.further_views[1].resize_height = 9;
  options.further_views[1].resize_width = 16;
  return options;
}

constexpr std::array<const char*, 3> kFields{"mask", "odd", "depth"};

// Everything that a batch has, read by a stream of its own.
std::vector<std::byte> contents(Device& device, const Batch& batch) {
  std::vector<TensorView> tensors;
  for (std::size_t view = 0; view < batch.views(); ++view) {
    tensors.push_back(batch.images(view));
    for (const char* const name : kFields) tensors.push_back(batch.field(name, view));
    for (const char* const name : {"boxes", "boxes_counts"}) tensors.push_back(batch.column(name, view));
  }
  tensors.push_back(batch.column("correspondence"));
  std::vector<std::byte> all;
  const auto stream = device.create_stream();
  batch.wait_on(*stream);
  for (const TensorView& tensor : tensors) {
    std::vector<std::byte> copy(tensor.size_bytes());
    const CopyItem item{copy.data(), tensor.data, copy.size()};
    stream->copy_to_host({&item, 1});
    stream->synchronize();
    all.insert(all.end(), copy.begin(), copy.end());
  }
  return all;
}

std::vector<std::vector<std::byte>> two_epochs(const std::filesystem::path& folder,
                                               const std::shared_ptr<Device>& device,
                                               const LoaderOptions& options) {
  Loader loader(Dataset::open(folder), device, options);
  std::vector<std::vector<std::byte>> batches;
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch)
    for (Batch& batch : loader.epoch(epoch)) batches.push_back(contents(*device, batch));
  return batches;
}

struct TargetCase {
  CodecSpec::Kind images;
  CodecSpec::Kind masks;
};

class LoaderTargets : public ::testing::TestWithParam<TargetCase> {
 protected:
  void SetUp() override { write_targets(dir_.path(), GetParam().images, GetParam().masks); }
  bool mapped() const {
    return GetParam().images != CodecSpec::Kind::zstd && GetParam().masks != CodecSpec::Kind::zstd;
  }
  TempDir dir_;
};

TEST_P(LoaderTargets, AreTheSameByEveryTransportAndOrderedOnADevice) {
  const auto expected = two_epochs(dir_.path(), make_host_device(2), with_views(TransportKind::staged));
  ASSERT_EQ(expected.size(), 2 * 48 / kRows);
  for (const TransportKind transport :
       {TransportKind::mapped, TransportKind::staged, TransportKind::direct, TransportKind::resident}) {
    if (transport == TransportKind::mapped && !mapped()) continue;
    for (const bool steps : {false, true}) {
      const auto device = std::make_shared<StepDevice>();
      device->run_freely(3);
      try {
        const auto found =
            two_epochs(dir_.path(), steps ? std::shared_ptr<Device>(device) : make_host_device(3),
                       with_views(transport));
        EXPECT_EQ(found, expected) << to_string(transport) << (steps ? ", step device" : ", host");
      } catch (const Error& error) {
        if (transport != TransportKind::direct || error.code() != ErrorCode::unsupported) throw;
      }
      EXPECT_EQ(device->races(), std::vector<std::string>{}) << to_string(transport);
    }
  }
}

TEST_P(LoaderTargets, WithoutATransformAreTheStoredSamples) {
  for (const TransportKind transport :
       {TransportKind::mapped, TransportKind::staged, TransportKind::resident}) {
    if (transport == TransportKind::mapped && !mapped()) continue;
    const auto device = make_host_device(2);
    Loader loader(Dataset::open(dir_.path()), device, with_targets(transport));
    for (std::uint64_t epoch = 0; epoch < 2; ++epoch)
      for (Batch& batch : loader.epoch(epoch)) {
        batch.wait();
        EXPECT_EQ(batch.field("mask").shape, (std::vector<std::uint64_t>{kRows, 12, 10}));
        for (std::size_t row = 0; row < kRows; ++row) {
          const std::uint64_t sample = batch.ids()[row];
          const std::vector<std::vector<std::byte>> stored{
              mask_bytes(sample), sample_bytes(sample + 2000, 25), sample_bytes(sample + 3000, 240)};
          for (std::size_t field = 0; field < kFields.size(); ++field)
            ASSERT_EQ(std::memcmp(batch.field(kFields[field]).data + row * stored[field].size(),
                                  stored[field].data(), stored[field].size()),
                      0)
                << kFields[field] << " of sample " << sample << ", " << to_string(transport);
          ASSERT_EQ(std::memcmp(batch.images().data + row * kImage.size_bytes(),
                                sample_bytes(sample, kImage.size_bytes()).data(), kImage.size_bytes()),
                    0);
        }
      }
  }
}

TEST_P(LoaderTargets, TakeTheMemoryThatWasPlanned) {
  const Dataset data = Dataset::open(dir_.path());
  for (const TransportKind transport :
       {TransportKind::mapped, TransportKind::staged, TransportKind::resident}) {
    if (transport == TransportKind::mapped && !mapped()) continue;
    for (const LoaderOptions& options : {with_targets(transport), with_views(transport)}) {
      const auto device = make_host_device(2);
      LoaderOptions bounded = options;
      bounded.memory.resident_bytes = 1 << 20;
      const LoaderMemory planned = plan_memory(data, *device, bounded);
      Loader loader(data, device, bounded);
      static_cast<void>(loader.next());
      EXPECT_EQ(loader.stats().device_bytes, planned.device_bytes) << to_string(transport);
      EXPECT_EQ(loader.stats().pinned_bytes, planned.pinned_bytes) << to_string(transport);
    }
  }
}

TEST_P(LoaderTargets, ADamagedFrameOfAFieldIsAnErrorThatNamesIt) {
  const Dataset data = Dataset::open(dir_.path());
  const ShardReader& shard = data.shard(0);
  const std::span<const std::byte> frame = shard.images(0).frame(5);
  const auto offset = static_cast<long>(frame.data() - shard.mapping().data());
  std::FILE* const file = std::fopen(shard.path().c_str(), "r+b");
  ASSERT_NE(file, nullptr);
  std::fseek(file, offset, SEEK_SET);
  for (std::size_t i = 0; i < frame.size(); ++i) std::fputc(0xA5, file);
  std::fclose(file);
  LoaderOptions options = with_views(TransportKind::staged);
  options.verify = Verify::always;
  Loader loader(Dataset::open(dir_.path()), make_host_device(2), options);
  const auto run = [&] {
    for (Batch& batch : loader.epoch(0)) batch.wait();
  };
  EXPECT_SHARD_ERROR(run(), ErrorCode::corrupt, "sample 5");
  EXPECT_SHARD_ERROR(static_cast<void>(loader.next()), ErrorCode::corrupt, "field \"mask\"");
}

constexpr auto kKindNone = CodecSpec::Kind::none;
constexpr auto kKindZstd = CodecSpec::Kind::zstd;
constexpr auto kKindPacked = CodecSpec::Kind::packed;
INSTANTIATE_TEST_SUITE_P(
    Codecs, LoaderTargets,
    ::testing::Values(TargetCase{kKindNone, kKindNone}, TargetCase{kKindNone, kKindPacked},
                      TargetCase{kKindPacked, kKindPacked}, TargetCase{kKindPacked, kKindNone},
                      TargetCase{kKindNone, kKindZstd}, TargetCase{kKindZstd, kKindPacked}));

TEST(Geometry, MatrixAndStepsMoveTheSamePoints) {
  TransformOptions options = with_views(TransportKind::staged).transform;
  options.operations.push_back(ops::Perspective{0.5, Interpolation::nearest, {}, 1});
  options.operations.push_back(ops::VerticalFlip{0.5});
  options.operations.push_back(ops::Turns{});
  const DatasetInfo info(DatasetSpec{kImage, {}, {}, {}, {}, {}, {}});
  const TransformWork work = plan_transform(info, options);
  std::size_t seen = 0;
  std::size_t mirrored = 0;
  for (std::uint64_t draw = 0; draw < 500; ++draw) {
    const Geometry geometry = draw_geometry(work, options, 1, 2, draw, 0);
    const Matrix3 m = matrix_of(geometry);
    std::vector<GeometryStep> steps;
    steps_of(geometry, steps);
    const PointXY from{3.5, 4.25};
    const auto to = move_point(steps, from);
    const double divisor = m[6] * from.x + m[7] * from.y + m[8];
    if (to) {
      ++seen;
      EXPECT_NEAR((m[0] * from.x + m[1] * from.y + m[2]) / divisor, to->x, 1e-9);
      EXPECT_NEAR((m[3] * from.x + m[4] * from.y + m[5]) / divisor, to->y, 1e-9);
    }
    // An odd number of mirrors turns areas over.
    const double determinant = m[0] * (m[4] * m[8] - m[5] * m[7]) - m[1] * (m[3] * m[8] - m[5] * m[6]) +
                               m[2] * (m[3] * m[7] - m[4] * m[6]);
    EXPECT_EQ(determinant < 0, mirrors(geometry)) << draw;
    mirrored += mirrors(geometry) ? 1 : 0;
  }
  EXPECT_GT(seen, 50U);
  EXPECT_GT(mirrored, 100U);
  EXPECT_LT(mirrored, 400U);
}

// A crop of [10, 20) x [10, 20), and an eighth of a turn.
TEST(Geometry, OfABoxThatOnlyTouchesTheCropNothingIsLeft) {
  const double c = std::sqrt(0.5);
  const std::vector<GeometryStep> crop{{{1, 0, -10, 0, 1, -10, 0, 0, 1}, 10, 10}};
  std::vector<GeometryStep> turned = crop;
  turned.push_back({{c, -c, 5, c, c, -2, 0, 0, 1}, 10, 10});
  const BoxXY touching[] = {
      {0, 12, 10, 18}, {20, 12, 30, 18}, {12, 0, 18, 10}, {12, 20, 18, 30}, {0, 0, 10, 10}};
  const BoxXY without_area[] = {{12, 12, 12, 18}, {12, 12, 18, 12}, {15, 15, 15, 15}};
  const BoxXY invalid[] = {{18, 12, 12, 18}, {std::nan(""), 12, 18, 18}, {12, 12, INFINITY, 18}};
  for (const auto& steps : {crop, turned}) {
    for (const BoxXY& box : touching) EXPECT_FALSE(move_box(steps, box)) << box.left << ' ' << box.top;
    for (const BoxXY& box : without_area) EXPECT_FALSE(move_box(steps, box)) << box.left << ' ' << box.top;
    for (const BoxXY& box : invalid) EXPECT_FALSE(move_box(steps, box)) << box.left << ' ' << box.top;
  }
  const auto inside = move_box(crop, {9, 12, 11, 18});
  ASSERT_TRUE(inside);
  EXPECT_EQ(inside->box.area(), 6);
  EXPECT_EQ(inside->visible, 0.5);
  EXPECT_TRUE(move_box(turned, {12, 12, 14, 14}));
}

}  // namespace
}  // namespace shard::testing
