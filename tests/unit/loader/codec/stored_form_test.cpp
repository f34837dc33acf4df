// What the loader is told of each codec, and what the device's verdict on a batch becomes.
#include "codec/stored_form.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "base/digest/checksum.hpp"
#include "format/codec/codecs.hpp"
#include "slot/verdict.hpp"
#include "support/expect_error.hpp"
#include "support/loader/loader_fixture.hpp"
#include "transport/sample_io.hpp"

namespace shard::testing {
namespace {

class StoredFormTest : public ::testing::Test {
 protected:
  void make(const CodecSpec& codec, DType dtype = DType::f16) {
    DatasetShape shape;
    shape.codec = codec;
    shape.spec.dtype = dtype;
    write_dataset(dir_.path(), shape);
    data_ = Dataset::open(dir_.path());
    form_ = make_stored_form(data_->info());
  }
  std::uint64_t sample_bytes() const { return data_->info().spec.size_bytes(); }

  TempDir dir_;
  std::optional<Dataset> data_;
  std::shared_ptr<const StoredForm> form_;
  std::shared_ptr<Device> device_ = make_host_device(1);
};

TEST_F(StoredFormTest, SamplesWithoutCodecGoAsTheyAre) {
  make({});
  EXPECT_EQ(form_->most_bytes_to_device(), sample_bytes());
  EXPECT_TRUE(form_->fixed_size());
  EXPECT_FALSE(form_->decoded_by_host());
  EXPECT_FALSE(form_->decoded_by_device());
  EXPECT_EQ(form_->transform_input(), data_->info().spec);
  EXPECT_EQ(form_->locate(*data_, {0, 1}).mapped, nullptr) << "found by the threads that copy it";
  EXPECT_EQ(form_->checksum(data_->shard(0), 1, data_->shard(0).images().frame(1)),
            data_->shard(0).images().checksum(1));
}

TEST_F(StoredFormTest, ZstdFramesAreDecodedByTheHost) {
  make({CodecSpec::Kind::zstd, 3});
  EXPECT_EQ(form_->most_bytes_to_device(), sample_bytes());
  EXPECT_EQ(form_->locate(*data_, {0, 1}).size_bytes, sample_bytes());
  EXPECT_TRUE(form_->decoded_by_host());
  EXPECT_FALSE(form_->decoded_by_device());
  std::vector<std::byte> staged(sample_bytes());
  stage_row(*data_, *form_, {1, 0, {0, 1}, nullptr, sample_bytes()}, staged.data(), true);
  EXPECT_EQ(xxh3(staged), data_->shard(0).images().checksum(1));
}

TEST_F(StoredFormTest, PackedFramesGoToTheDeviceAsBytes) {
  make({CodecSpec::Kind::packed});
  EXPECT_FALSE(form_->fixed_size());
  EXPECT_TRUE(form_->decoded_by_device());
  EXPECT_EQ(form_->transform_input().dtype, DType::u8);
  EXPECT_EQ(form_->transform_input().height, data_->info().spec.height);
  const StoredSample sample = form_->locate(*data_, {0, 1});
  const std::span<const std::byte> frame = data_->shard(0).images().frame(1);
  EXPECT_EQ(sample.mapped, frame.data());
  EXPECT_EQ(sample.size_bytes, frame.size());
  EXPECT_LE(sample.size_bytes, form_->most_bytes_to_device());
  EXPECT_EQ(form_->checksum(data_->shard(0), 1, frame), data_->shard(0).images().checksum(1));
  const std::vector<std::uint64_t> sizes{frame.size()};
  TransformWork work = plan_transform(data_->info(), {});
  std::byte scratch{};
  form_->describe(work, {sizes, {}}, &scratch);
  EXPECT_EQ(work.frame_bytes.data(), sizes.data());
  EXPECT_EQ(work.unpacked, &scratch);
  TransformOptions resize;
  resize.crop = CropKind::random_resized;
  DeviceInfo gpu;
  EXPECT_EQ(form_->needs_scratch({}, gpu), false);
  EXPECT_EQ(form_->needs_scratch(resize, gpu), true);
  EXPECT_EQ(form_->needs_scratch(resize, device_->info()), false) << "it reads frames where they are";
}

TEST_F(StoredFormTest, JpegFramesGoToTheDeviceAsBytes) {
  make({CodecSpec::Kind::jpeg}, DType::u8);
  EXPECT_FALSE(form_->fixed_size());
  EXPECT_TRUE(form_->decoded_by_device());
  EXPECT_EQ(form_->transform_input(), data_->info().spec);
  const StoredImages& images = data_->shard(0).images();
  const StoredSample sample = form_->locate(*data_, {0, 1});
  EXPECT_EQ(sample.mapped, images.frame(1).data());
  EXPECT_EQ(sample.size_bytes, images.frame(1).size());
  EXPECT_EQ(sample.file, images.frame_spec(1).file);
  EXPECT_LE(sample.size_bytes, form_->most_bytes_to_device());
  EXPECT_EQ(form_->checksum(data_->shard(0), 1, images.frame(1)), images.checksum(1));
  const std::vector<std::uint64_t> sizes{sample.size_bytes};
  const std::vector<jpeg::FrameFile> files{sample.file};
  TransformWork work = plan_transform(data_->info(), {});
  form_->describe(work, {sizes, files}, nullptr);
  EXPECT_EQ(work.frame_bytes.data(), sizes.data());
  EXPECT_EQ(work.files.data(), files.data());
  DeviceInfo gpu;
  EXPECT_TRUE(form_->decodes_first(1, gpu));
  EXPECT_FALSE(form_->decodes_first(1, device_->info())) << "the transform decodes what it needs";
  EXPECT_TRUE(form_->decodes_first(2, device_->info())) << "once for both views";
}

// Only a bound of their frames is known, which is many times what they have.
TEST_F(StoredFormTest, RoomForJpegsOfOneSizeFollowsTheirMean) {
  make({CodecSpec::Kind::jpeg}, DType::u8);
  LoaderOptions options;
  options.batch_size = 512;
  EXPECT_TRUE(form_->may_be_late());
  EXPECT_GE(form_->most_bytes_to_device(), 1U << 20U);
  std::uint64_t stored = 0;
  for (const ShardSummary& shard : data_->info().shards) stored += shard.size_bytes;
  EXPECT_LE(form_->room_bytes(options), 1024 * (stored / data_->size() + 4096));
  options.batch_size = 1;
  EXPECT_GE(form_->room_bytes(options), form_->most_bytes_to_device());
  EXPECT_GE(form_->late_group_bytes(options), form_->most_bytes_to_device());
}

TEST(StoredForms, EachCodecHasOne) {
  for (const CodecRow& row : codecs()) {
    DatasetInfo info;
    info.spec = {DType::u8, Layout::nhwc, 3, 4, 5};
    info.codec = {row.kind};
    try {
      const auto form = make_stored_form(info);
      EXPECT_EQ(form->decoded_by_host() || form->decoded_by_device(), row.framed) << row.name;
      EXPECT_EQ(decodes_frames(info), form->decoded_by_device()) << row.name;
    } catch (const Error& error) {
      ADD_FAILURE() << "codec " << row.name
                    << " has no row in loader/src/codec/stored_form.cpp: " << error.what();
    }
  }
}

// The consumer asks when it wants the next batch, which may be after the feeder has taken the slot again.
TEST_F(StoredFormTest, AVerdictIsKeptUntilTheBatchAfterTheNext) {
  make({CodecSpec::Kind::packed});
  Verdict verdict(*data_, {form_}, *device_, 4);
  verdict.start_batch({{0, 5}, {1, 6}});
  const std::uint64_t batch = verdict.batch();
  EXPECT_NO_THROW(verdict.check(batch, 0, 2));
  verdict.entries()[1] = 1;
  EXPECT_NO_THROW(verdict.check(batch, 0, 1)) << "of the rows before";
  EXPECT_SHARD_ERROR(verdict.check(batch, 0, 2), ErrorCode::corrupt,
                     "its stored frame was damaged when it reached the device, but is valid now");
  verdict.start_batch({{2, 0}});
  EXPECT_NO_THROW(verdict.check(verdict.batch(), 0, 2));
  EXPECT_SHARD_ERROR(verdict.check(batch, 0, 2), ErrorCode::corrupt, "shard-1.safetensors\": sample 6");
  verdict.start_batch({{0, 0}, {0, 1}});
  EXPECT_NO_THROW(verdict.check(batch, 0, 2));
  EXPECT_NO_THROW(verdict.check(verdict.batch(), 0, 2));
}

}  // namespace
}  // namespace shard::testing
