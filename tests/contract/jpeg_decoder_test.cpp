// JpegDecoder on the host device, and on one that decodes as kernels do.
#include "support/device/kernel_like_device.hpp"
#include "support/jpeg/jpeg_decoder_contract.hpp"

namespace shard::testing {
namespace {

std::shared_ptr<Device> host() { return make_host_device(2); }
std::shared_ptr<Device> kernel_like() { return std::make_shared<KernelLikeDevice>(make_host_device(2)); }
INSTANTIATE_TEST_SUITE_P(Host, JpegDecoderContract, ::testing::Values(&host));
INSTANTIATE_TEST_SUITE_P(KernelLike, JpegDecoderContract, ::testing::Values(&kernel_like));

TEST(JpegDecoder, GivesKernelsWhatTheyDecode) {
  const auto device = std::make_shared<KernelLikeDevice>(make_host_device(2));
  JpegDecoder decoder(device, 1);
  std::mt19937_64 random(1);
  JpegOptions options;
  options.width = options.height = 50;
  const Bytes baseline = random_file(random, options);
  options.progressive = true;
  const Bytes progressive = random_file(random, options);
  const std::vector<JpegInput> inputs = {
      {baseline, std::nullopt, false}, {progressive, std::nullopt, false}, {baseline, std::nullopt, false}};
  EXPECT_EQ(decoder.decode(inputs).on_host, 1U);
  EXPECT_EQ(device->decoded(), 2U);
}

// Of a call's files some are copied to pinned memory first, the others from where they are; more files than a
// thread reads headers of at once.
TEST(JpegDecoder, TakesPinnedFilesBesideOthers) {
  const auto device = std::make_shared<KernelLikeDevice>(make_host_device(2));
  std::mt19937_64 random(1);
  std::vector<Bytes> files;
  for (std::uint32_t i = 0; i < 150; ++i) {
    JpegOptions options;
    options.width = 8 + i % 9;
    options.height = 16;
    options.progressive = i % 50 == 7;
    files.push_back(random_file(random, options));
  }
  std::vector<JpegInput> inputs;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (i % 3 == 1) device->pin(files[i]);
    inputs.push_back({files[i], std::nullopt, false});
  }
  JpegDecoder decoder(device, 3);
  for (const std::size_t count : {files.size(), std::size_t{5}}) {
    const JpegBatch batch = decoder.decode(std::span(inputs).first(count));
    EXPECT_EQ(batch.on_host, count == 5 ? 0U : 3U);
    for (std::size_t i = 0; i < count; ++i) {
      const Rgb right = rgb_of(files[i]);
      ASSERT_EQ(batch.images[i].width, right.width) << i;
      EXPECT_EQ(std::memcmp(batch.memory->data() + batch.images[i].offset, right.values.data(),
                            right.values.size()),
                0)
          << i;
    }
  }
}

// Threads of the host decode their files while kernels decode the others.
TEST(JpegDecoder, DecodesOnTheHostBesideTheKernels) {
  const auto device = std::make_shared<KernelLikeDevice>(make_host_device(2));
  std::mt19937_64 random(1);
  JpegOptions options;
  const Bytes baseline = random_file(random, options);
  options.progressive = true;
  const Bytes progressive = random_file(random, options);
  const std::vector<JpegInput> inputs = {{baseline, std::nullopt, false}, {progressive, std::nullopt, false}};
  JpegDecoder decoder(device, 1);
  device->work_until_copy(2);  // of the baseline file, then of the other one's pixels
  const JpegBatch batch = decoder.decode(inputs);
  EXPECT_EQ(batch.on_host, 1U);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Rgb right = rgb_of(i == 0 ? baseline : progressive);
    EXPECT_EQ(
        std::memcmp(batch.memory->data() + batch.images[i].offset, right.values.data(), right.values.size()),
        0)
        << i;
  }
}

// A header that says more than the file can have takes no memory for the kernels.
TEST(JpegDecoder, GivesKernelsNoPixelsThatCannotBeThere) {
  const auto device = std::make_shared<KernelLikeDevice>(make_host_device(2));
  JpegDecoder decoder(device, 1);
  std::mt19937_64 random(1);
  Bytes file = random_file(random, {});
  for (std::size_t at = 2; at + 8 < file.size(); ++at)
    if (file[at] == std::byte{0xFF} && file[at + 1] == std::byte{0xC0}) {
      file[at + 5] = file[at + 7] = std::byte{0x10};  // 4096 and more rows and columns
      break;
    }
  const std::vector<JpegInput> inputs = {{file, std::nullopt, false}};
  EXPECT_SHARD_ERROR(decoder.decode(inputs), ErrorCode::corrupt, "input 0: ");
  EXPECT_EQ(device->decoded(), 0U);
}

TEST(JpegDecoder, TakesFilesInDeviceMemory) {
  const auto device = std::make_shared<KernelLikeDevice>(make_host_device(2));
  std::mt19937_64 random(1);
  const Bytes file = random_file(random, {});
  const std::unique_ptr<Block> there = device->allocate_device(file.size());
  std::memcpy(there->data(), file.data(), file.size());
  const std::vector<JpegInput> inputs = {{{there->data(), file.size()}, std::nullopt, true}};
  JpegDecoder decoder(device, 1);
  const JpegBatch batch = decoder.decode(inputs);
  const Rgb right = rgb_of(file);
  ASSERT_EQ(batch.images[0].width, right.width);
  EXPECT_EQ(std::memcmp(batch.memory->data(), right.values.data(), right.values.size()), 0);
}

// Memory outlives decoder and device.
TEST(JpegDecoder, LeavesItsMemoryToTheHolder) {
  std::mt19937_64 random(1);
  const Bytes file = random_file(random, {});
  const std::vector<JpegInput> inputs = {{file, std::nullopt, false}};
  JpegBatch batch;
  {
    JpegDecoder decoder(make_host_device(1), 1);
    batch = decoder.decode(inputs);
  }
  const Rgb right = rgb_of(file);
  EXPECT_EQ(std::memcmp(batch.memory->data(), right.values.data(), right.values.size()), 0);
}

// Memory that was given back is used again; that of a batch which is held is not.
TEST(JpegDecoder, UsesMemoryAgain) {
  std::mt19937_64 random(1);
  const Bytes file = random_file(random, {});
  const std::vector<JpegInput> inputs = {{file, std::nullopt, false}};
  JpegDecoder decoder(make_host_device(1), 1);
  JpegBatch first = decoder.decode(inputs);
  const std::byte* const memory = first.memory->data();
  const JpegBatch second = decoder.decode(inputs);
  EXPECT_NE(second.memory->data(), memory);
  first = {};
  EXPECT_EQ(decoder.decode(inputs).memory->data(), memory);
}

TEST(JpegDecoder, RefusesTooManyThreads) {
  EXPECT_SHARD_ERROR(JpegDecoder(make_host_device(1), 65), ErrorCode::invalid_argument, "65 threads");
}

}  // namespace
}  // namespace shard::testing
