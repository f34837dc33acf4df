// Frames of codec jpeg through Stream::transform() on a GPU, as on the host: boxes, bands of little
// workspace, crops, damaged frames.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "base/bytes.hpp"
#include "codec/jpeg_workspace.hpp"
#include "jpeg/frame.hpp"
#include "shard/loader/cuda_device.hpp"
#include "support/expect_error.hpp"
#include "support/jpeg/jpeg_dataset.hpp"
#include "transform/check_work.hpp"
#include "transform/host_transform.hpp"
#include "transform/jpeg_work.hpp"

namespace shard::testing {
namespace {

constexpr std::size_t kFrames = 40;

class JpegStream : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device on this machine";
    device_ = make_cuda_device(0);
    stream_ = device_->create_stream();
    JpegShape shape;
    for (std::size_t i = 0; i < kFrames; ++i) {
      frames_.push_back(jpeg_frame(shape, i, 3));
      files_.push_back(frames_[i].file);
      sizes_.push_back({files_[i].upright_height(), files_[i].upright_width()});
      frame_bytes_.push_back(frames_[i].bytes.size());
    }
  }

  // Places the frames in one block, and sets what all works have.
  TransformWork make_work() {
    std::uint64_t bytes = 0;
    for (const JpegFrame& frame : frames_) bytes += frame.bytes.size();
    pinned_ = device_->allocate_pinned(bytes);
    on_device_ = device_->allocate_device(bytes);
    sources_.clear();
    host_sources_.clear();
    std::uint64_t at = 0;
    for (const JpegFrame& frame : frames_) {
      std::memcpy(pinned_->data() + at, frame.bytes.data(), frame.bytes.size());
      sources_.push_back(on_device_->data() + at);
      host_sources_.push_back(pinned_->data() + at);
      at += frame.bytes.size();
    }
    const CopyItem item{on_device_->data(), pinned_->data(), bytes};
    stream_->copy({&item, 1});
    verdict_ = device_->allocate_pinned(kFrames * sizeof(std::uint32_t));
    std::memset(verdict_->data(), 0, verdict_->size_bytes());
    host_broken_.assign(kFrames, 0);
    TransformWork work;
    work.stored = {DType::u8, Layout::nhwc, 3, 0, 0};
    work.exact = true;
    work.sizes = sizes_;
    work.files = files_;
    work.frame_bytes = frame_bytes_;
    work.crops = crops_;
    return work;
  }
  std::uint64_t room_of_all() const {
    std::uint64_t bytes = 0;
    const SampleSpec spec{DType::u8, Layout::nhwc, 3, 0, 0};
    for (const SampleSize& size : sizes_) bytes += unpacked_room(spec.sized(size.height, size.width));
    return bytes;
  }
  std::uint64_t least_workspace() const {
    std::uint32_t height = 0;
    std::uint32_t width = 0;
    for (const SampleSize& size : sizes_) {
      height = std::max(height, size.height);
      width = std::max(width, size.width);
    }
    return round_up(least_jpeg_workspace_bytes(height, width, 3), 256);
  }
  // The target of the GPU, and that of the host, which begin with the same bytes.
  void run(TransformWork work, std::uint64_t target_bytes, std::uint64_t workspace_bytes) {
    const auto target = device_->allocate_device(target_bytes);
    const auto unpacked = device_->allocate_device(room_of_all());
    const auto workspace = device_->allocate_device(workspace_bytes);
    const auto bytes = device_->allocate_pinned(target_bytes);
    std::memset(bytes->data(), 0xEE, target_bytes);
    host_.assign(target_bytes, std::byte{0xEE});
    const CopyItem fill{target->data(), bytes->data(), target_bytes};
    stream_->copy({&fill, 1});
    work.sources = sources_;
    work.target = target->data();
    work.broken = reinterpret_cast<std::uint32_t*>(verdict_->data());
    work.workspace = workspace->data();
    work.workspace_bytes = workspace_bytes;
    if (!work.only_decodes()) work.unpacked = unpacked->data();
    stream_->transform(work);
    const CopyItem back{bytes->data(), target->data(), target_bytes};
    stream_->copy_to_host({&back, 1});
    stream_->synchronize();
    gpu_.assign(bytes->data(), bytes->data() + target_bytes);
    work.sources = host_sources_;
    work.target = host_.data();
    work.broken = host_broken_.data();
    work.unpacked = nullptr;
    work.workspace = nullptr;
    transform_rows(work, 0, kFrames);
  }
  std::uint32_t broken(std::size_t i) const {
    return reinterpret_cast<const std::uint32_t*>(verdict_->data())[i];
  }

  std::shared_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::vector<JpegFrame> frames_;
  std::vector<jpeg::FrameFile> files_;
  std::vector<SampleSize> sizes_;
  std::vector<std::uint64_t> frame_bytes_;
  std::vector<SampleCrop> crops_;
  std::unique_ptr<Block> pinned_;
  std::unique_ptr<Block> on_device_;
  std::unique_ptr<Block> verdict_;
  std::vector<const std::byte*> sources_;
  std::vector<const std::byte*> host_sources_;
  std::vector<std::uint32_t> host_broken_;
  std::vector<std::byte> gpu_;
  std::vector<std::byte> host_;
};

TEST_F(JpegStream, DecodesBoxesWithAnyWorkspaceAndWritesNothingElse) {
  std::mt19937_64 random(11);
  const auto below = [&](std::uint32_t end) { return static_cast<std::uint32_t>(random() % end); };
  for (int round = 0; round < 12; ++round) {
    crops_.clear();
    for (const SampleSize& size : sizes_) {
      SampleCrop crop{0, 0, size.width, size.height, false};
      if (round % 3 != 0) {
        crop.left = below(size.width);
        crop.top = below(size.height);
        crop.width = 1 + below(size.width - crop.left);
        crop.height = 1 + below(size.height - crop.top);
      }
      crop.resized_height = crop.height;
      crop.resized_width = crop.width;
      crops_.push_back(crop);
    }
    TransformWork work = make_work();
    work.delivered = work.stored;
    const std::uint64_t least = least_workspace();
    run(work, room_of_all(), round % 2 == 0 ? least : round % 4 == 1 ? 3 * least : std::uint64_t{64} << 20U);
    for (std::size_t i = 0; i < kFrames; ++i) EXPECT_EQ(broken(i), 0U) << i;
    ASSERT_EQ(host_broken_, std::vector<std::uint32_t>(kFrames, 0));
    ASSERT_EQ(gpu_, host_) << "round " << round;
  }
}

TEST_F(JpegStream, MakesCropsOfFrames) {
  TransformOptions view;
  view.crop = CropKind::random_resized;
  view.crop_height = 20;
  view.crop_width = 24;
  const SampleSpec free{DType::u8, Layout::nhwc, 3, 0, 0};
  for (const DType dtype : {DType::u8, DType::f16}) {
    crops_.clear();
    for (const SampleSize& size : sizes_)
      crops_.push_back(draw_crop(free.sized(size.height, size.width), view, 5, 1, crops_.size()));
    TransformWork work = make_work();
    work.delivered = {dtype, Layout::nchw, 3, 20, 24};
    work.normalization = kNormalization;
    work.normalize = dtype != DType::u8;
    run(work, kFrames * work.delivered.size_bytes(), least_workspace());
    ASSERT_EQ(gpu_, host_);
  }
}

// What is not found to be damaged is what libjpeg-turbo makes of the damaged file.
TEST_F(JpegStream, FindsDamageOrDecodesAsTheHostDoes) {
  const std::vector<JpegFrame> whole = frames_;
  std::mt19937_64 random(7);
  std::uint64_t found = 0;
  for (int round = 0; round < 60; ++round) {
    frames_ = whole;
    std::vector<bool> in_index(kFrames);
    for (std::size_t i = 0; i < kFrames; ++i) {
      const std::uint64_t begin = jpeg::parse_header(file_of(whole[i].bytes, files_[i])).data_offset;
      in_index[i] = random() % 8 == 0;
      const std::uint64_t first = in_index[i] ? jpeg::index_offset(files_[i]) : begin;
      const std::uint64_t end = in_index[i] ? first + jpeg::index_bytes(jpeg::geometry_of(files_[i]))
                                            : std::uint64_t{files_[i].bytes} - 2;
      frames_[i].bytes[first + random() % (end - first)] ^= static_cast<std::byte>(1U << random() % 8);
    }
    crops_.clear();
    for (const SampleSize& size : sizes_)
      crops_.push_back({0, 0, size.width, size.height, false, size.height, size.width});
    TransformWork work = make_work();
    work.delivered = work.stored;
    run(work, room_of_all(), std::uint64_t{64} << 20U);
    std::uint64_t at = 0;
    for (std::size_t i = 0; i < kFrames; ++i) {
      const std::uint64_t size = std::uint64_t{3} * sizes_[i].height * sizes_[i].width;
      if (broken(i) != 0) {
        ++found;
      } else if (!in_index[i]) {
        EXPECT_EQ(host_broken_[i], 0U) << "round " << round << ", frame " << i;
        const bool equal = std::memcmp(&gpu_[at], &host_[at], size) == 0;
        EXPECT_TRUE(equal || host_broken_[i] != 0) << "round " << round << ", frame " << i;
      }
      at += round_up(size, TransformWork::kUnpackedAlign);
    }
  }
  EXPECT_GT(found, 60 * kFrames / 4);
}

TEST_F(JpegStream, MakesTheIndicesOfFrames) {
  make_work();
  std::uint64_t bytes = 0;
  std::uint64_t most = 0;
  std::uint64_t all = 0;
  JpegIndexWork work;
  std::vector<JpegIndexWork::Frame> frames;
  constexpr std::size_t kDamaged = 5;
  for (std::size_t i = 0; i < kFrames; ++i) {
    const jpeg::FrameFile& file = files_[i];
    std::memset(pinned_->data() + bytes + file.bytes, 0xEE, frame_bytes_[i] - file.bytes);
    if (i == kDamaged) std::memset(pinned_->data() + bytes + file.bytes / 2, 0xFF, file.bytes / 2);
    frames.push_back({file, on_device_->data() + bytes});
    bytes += frame_bytes_[i];
    most = std::max(most, index_stage_bytes(file));
    all += index_stage_bytes(file);
  }
  work.frames = frames;
  const auto made = device_->allocate_pinned(bytes);
  for (const std::uint64_t room : {most, most + all / 7, all}) {
    const auto workspace = device_->allocate_device(room);
    work.workspace = workspace->data();
    work.workspace_bytes = room;
    const CopyItem there{on_device_->data(), pinned_->data(), bytes};
    stream_->copy({&there, 1});
    stream_->index_jpeg(work);
    const CopyItem back{made->data(), on_device_->data(), bytes};
    stream_->copy_to_host({&back, 1});
    stream_->synchronize();
    std::uint64_t at = 0;
    for (std::size_t i = 0; i < kFrames; at += frame_bytes_[i++]) {
      const std::uint64_t begin = jpeg::index_offset(files_[i]);
      if (i == kDamaged) {
        const std::vector<std::byte> head(made->data() + at + begin, made->data() + at + begin + 4);
        EXPECT_EQ(head, std::vector<std::byte>(4));
        continue;
      }
      const std::uint64_t size = jpeg::index_bytes(jpeg::geometry_of(files_[i]));
      EXPECT_EQ(std::memcmp(made->data() + at + begin, frames_[i].bytes.data() + begin, size), 0)
          << "frame " << i << ", workspace " << room;
    }
  }
  work.workspace_bytes = most / 2;
  EXPECT_SHARD_ERROR(stream_->index_jpeg(work), ErrorCode::resource, "bytes of workspace");
}

TEST_F(JpegStream, LeavesRowsThatAreNoFramesAsTheyAre) {
  crops_.clear();
  for (const SampleSize& size : sizes_)
    crops_.push_back({0, 0, size.width, size.height, false, size.height, size.width});
  TransformWork work = make_work();
  work.delivered = work.stored;
  std::uint64_t room = 0;
  for (std::size_t i = 0; i < kFrames; ++i) {
    if (i % 3 == 1) files_[i] = {};
    room += decoded_room(work, i);
  }
  ASSERT_LT(room, room_of_all());
  run(work, room, least_workspace());
  EXPECT_EQ(gpu_, host_);
  for (std::size_t i = 0; i < kFrames; ++i) EXPECT_EQ(broken(i), 0U) << i;
}

TEST_F(JpegStream, RefusesFramesThatDoNotFitWhatTheHeadSays) {
  crops_.clear();
  for (const SampleSize& size : sizes_)
    crops_.push_back({0, 0, size.width, size.height, false, size.height, size.width});
  files_[3].bytes += 32;
  TransformWork work = make_work();
  work.delivered = work.stored;
  EXPECT_SHARD_ERROR(run(work, room_of_all(), least_workspace()), ErrorCode::invalid_argument, "row 3");
}

}  // namespace
}  // namespace shard::testing
