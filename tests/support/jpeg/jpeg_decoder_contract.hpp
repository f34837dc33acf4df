// What JpegDecoder promises, on every device.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "shard/image/preprocess.hpp"
#include "shard/loader/jpeg_decoder.hpp"
#include "support/expect_error.hpp"
#include "support/jpeg/jpeg_decoding.hpp"
#include "support/jpeg/random_jpeg.hpp"
#include "support/rounds.hpp"

namespace shard::testing {

using Bytes = std::vector<std::byte>;

// With an EXIF segment that has an orientation, right behind SOI.
inline Bytes oriented(Bytes file, unsigned orientation) {
  const std::vector<unsigned> segment = {0xFF, 0xE1, 0, 34, 'E', 'x',         'i', 'f', 0, 0,  'M', 'M',
                                         0,    42,   0, 0,  0,   8,           0,   1,   1, 18, 0,   3,
                                         0,    0,    0, 1,  0,   orientation, 0,   0,   0, 0,  0,   0};
  Bytes bytes;
  for (const unsigned value : segment) bytes.push_back(static_cast<std::byte>(value));
  file.insert(file.begin() + 2, bytes.begin(), bytes.end());
  return file;
}

// As the image contract has it, which equals Pillow.
struct Rgb {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::vector<std::uint8_t> values;
};
inline Rgb rgb_of(std::span<const std::byte> file) {
  image::Decoder decoder;
  const image::RgbView view = decoder.decode(file, {});
  Rgb rgb{view.width, view.height, {}};
  for (std::uint32_t y = 0; y < view.height; ++y)
    rgb.values.insert(rgb.values.end(), view.data + y * view.stride_bytes,
                      view.data + y * view.stride_bytes + std::size_t{view.width} * 3);
  return rgb;
}
inline Rgb cropped(const Rgb& image, const JpegBox& box) {
  Rgb part{box.width, box.height, {}};
  for (std::uint32_t y = box.top; y < box.top + box.height; ++y) {
    const auto row =
        image.values.begin() + static_cast<std::ptrdiff_t>((std::size_t{y} * image.width + box.left) * 3);
    part.values.insert(part.values.end(), row, row + std::ptrdiff_t{box.width} * 3);
  }
  return part;
}
inline std::vector<std::byte> resized(const Rgb& image, std::uint32_t height, std::uint32_t width,
                                      DType dtype, Layout layout, const Normalization& normalization) {
  image::PreprocessOptions options;
  options.squash = image::Size{width, height};
  options.crop = std::nullopt;
  options.dtype = dtype;
  options.layout = layout;
  options.normalization = normalization;
  image::Preprocessor preprocessor(options);
  std::vector<std::byte> out(options.sample_spec().size_bytes());
  preprocessor.run(
      image::RgbView{image.values.data(), image.width, image.height, std::size_t{image.width} * 3},
      std::span<std::byte>(out));
  return out;
}

class JpegDecoderContract : public ::testing::TestWithParam<std::function<std::shared_ptr<Device>()>> {
 protected:
  void SetUp() override {
    device_ = GetParam()();
    if (!device_) GTEST_SKIP() << "no CUDA device on this machine";
  }
  JpegDecoder decoder() { return JpegDecoder(device_, 2); }
  std::vector<std::byte> bytes_of(const JpegBatch& batch, std::size_t i, std::uint64_t unit = 1) {
    const JpegBatch::Image& image = batch.images[i];
    std::vector<std::byte> bytes(std::uint64_t{image.height} * image.width * 3 * unit);
    const std::unique_ptr<Stream> stream = device_->create_stream();
    const CopyItem item{bytes.data(), batch.memory->data() + image.offset, bytes.size()};
    stream->copy_to_host({&item, 1});
    stream->synchronize();
    return bytes;
  }
  Rgb rgb(const JpegBatch& batch, std::size_t i) {
    const auto bytes = bytes_of(batch, i);
    Rgb image{batch.images[i].width, batch.images[i].height, {}};
    for (const std::byte value : bytes) image.values.push_back(std::to_integer<std::uint8_t>(value));
    return image;
  }
  static void expect_equal(const Rgb& one, const Rgb& other, const std::string& name) {
    ASSERT_EQ(one.width, other.width) << name;
    ASSERT_EQ(one.height, other.height) << name;
    ASSERT_EQ(one.values, other.values) << name;
  }

  std::shared_ptr<Device> device_;
};

// Of all kinds: baseline, progressive, arithmetic, several scans, gray, CMYK, turned.
inline std::vector<Bytes> files_of_all_kinds(std::uint64_t seed, std::size_t count,
                                             std::uint32_t most_pixels) {
  std::vector<Bytes> files;
  for (std::size_t i = 0; i < count; ++i) {
    std::mt19937_64 random(seed * 1000 + i);
    if (i % 7 == 3) {
      files.push_back(random_jpeg(random, {static_cast<Coefficients>(i % 3), most_pixels}));
      continue;
    }
    JpegOptions options = random_options(random, most_pixels);
    if (i % 9 == 5) options.progressive = true;
    if (i % 9 == 7) options.scan_of_each = true;
    if (i % 9 == 8) options.arithmetic = true;
    Bytes file = random_file(random, options);
    if (i % 3 == 0) file = oriented(std::move(file), static_cast<unsigned>(1 + i / 3 % 8));
    files.push_back(std::move(file));
  }
  return files;
}

TEST_P(JpegDecoderContract, DecodesEveryKindAsTheImageContract) {
  JpegDecoder decoder = this->decoder();
  const std::uint64_t count = rounds(4, 1);
  for (std::uint64_t round = 0; round < count; ++round) {
    const std::vector<Bytes> files = files_of_all_kinds(first_seed() + round, 300, round % 2 == 0 ? 60 : 200);
    std::vector<JpegInput> inputs;
    for (const Bytes& file : files) inputs.push_back({file, std::nullopt, false});
    const JpegBatch batch = decoder.decode(inputs);
    ASSERT_EQ(batch.images.size(), files.size());
    for (std::size_t i = 0; i < files.size(); ++i)
      expect_equal(rgb(batch, i), rgb_of(files[i]),
                   "round " + std::to_string(round) + ", " + std::to_string(i));
    if (device_->info().decodes_jpeg) {
      EXPECT_GE(batch.on_host, files.size() / 9 * 3 - 20);
      EXPECT_LT(batch.on_host, files.size() / 2);
    } else {
      EXPECT_EQ(batch.on_host, files.size());
    }
  }
}

TEST_P(JpegDecoderContract, DeliversBoxesAsTheyAre) {
  JpegDecoder decoder = this->decoder();
  const std::vector<Bytes> files = files_of_all_kinds(first_seed() + 50, 80, 150);
  std::mt19937_64 random(first_seed());
  std::vector<JpegInput> inputs;
  std::vector<Rgb> right;
  for (const Bytes& file : files) {
    const Rgb whole = rgb_of(file);
    JpegBox box{static_cast<std::uint32_t>(random() % whole.width),
                static_cast<std::uint32_t>(random() % whole.height), 0, 0};
    box.width = 1 + static_cast<std::uint32_t>(random() % (whole.width - box.left));
    box.height = 1 + static_cast<std::uint32_t>(random() % (whole.height - box.top));
    inputs.push_back({file, box, false});
    right.push_back(cropped(whole, box));
  }
  const JpegBatch batch = decoder.decode(inputs);
  for (std::size_t i = 0; i < files.size(); ++i) expect_equal(rgb(batch, i), right[i], std::to_string(i));
}

TEST_P(JpegDecoderContract, ResizesAsPillow) {
  JpegDecoder decoder = this->decoder();
  const std::vector<Bytes> files = files_of_all_kinds(first_seed() + 90, 60, 150);
  std::mt19937_64 random(first_seed());
  std::vector<JpegInput> inputs;
  std::vector<Rgb> parts;
  for (const Bytes& file : files) {
    const Rgb whole = rgb_of(file);
    inputs.push_back({file, std::nullopt, false});
    parts.push_back(whole);
    if (whole.width < 4 || whole.height < 4 || random() % 2 == 0) continue;
    const JpegBox box{1, 2, whole.width - 2, whole.height - 3};
    inputs.back().box = box;
    parts.back() = cropped(whole, box);
  }
  for (const DType dtype : {DType::u8, DType::f16, DType::f32})
    for (const Layout layout : {Layout::nhwc, Layout::nchw}) {
      JpegDecodeOptions options;
      options.height = 23;
      options.width = 37;
      options.dtype = dtype;
      options.layout = layout;
      Normalization normalization;
      if (dtype != DType::u8) {
        normalization = {{0.5F, 0.4F, 0.3F}, {0.2F, 0.25F, 0.3F}};
        options.normalization = normalization;
      }
      const JpegBatch batch = decoder.decode(inputs, options);
      for (std::size_t i = 0; i < inputs.size(); ++i)
        ASSERT_EQ(bytes_of(batch, i, size_bytes(dtype)),
                  resized(parts[i], options.height, options.width, dtype, layout, normalization))
            << i << ", " << to_string(dtype);
    }
}

TEST_P(JpegDecoderContract, LeavesFilesAsTheyAreStored) {
  std::mt19937_64 random(first_seed());
  JpegOptions options;
  options.width = 40;
  options.height = 24;
  const Bytes plain = random_file(random, options);
  const Bytes turned = oriented(plain, 6);
  const std::vector<JpegInput> inputs = {{turned, std::nullopt, false}};
  JpegDecoder decoder = this->decoder();
  JpegDecodeOptions as_stored;
  as_stored.upright = false;
  expect_equal(rgb(decoder.decode(inputs, as_stored), 0), rgb_of(plain), "as stored");
  const JpegBatch upright = decoder.decode(inputs);
  EXPECT_EQ(upright.images[0].height, 40U);
  EXPECT_EQ(upright.images[0].width, 24U);
}

TEST_P(JpegDecoderContract, NamesTheInputThatFails) {
  std::mt19937_64 random(first_seed());
  JpegOptions options;
  options.width = options.height = 64;
  const Bytes good = random_file(random, options);
  Bytes cut = good;
  cut.resize(cut.size() - cut.size() / 3);
  const Bytes text(20, std::byte{'a'});
  const Bytes none;
  JpegDecoder decoder = this->decoder();
  const auto decode = [&](const Bytes& bad, std::optional<JpegBox> box, bool report) {
    const std::vector<JpegInput> inputs = {
        {good, std::nullopt, false}, {bad, box, false}, {good, std::nullopt, false}};
    JpegDecodeOptions how;
    how.report_failures = report;
    return decoder.decode(inputs, how);
  };
  EXPECT_SHARD_ERROR(decode(cut, std::nullopt, false), ErrorCode::corrupt, "input 1: ");
  EXPECT_SHARD_ERROR(decode(text, std::nullopt, false), ErrorCode::unsupported, "input 1: ");
  EXPECT_SHARD_ERROR(decode(none, std::nullopt, false), ErrorCode::corrupt, "input 1: no bytes");
  EXPECT_SHARD_ERROR(decode(good, JpegBox{60, 0, 5, 1}, false), ErrorCode::invalid_argument,
                     "input 1: a box of 5 columns");
  for (const Bytes& bad : {cut, text, none}) {
    const JpegBatch batch = decode(bad, std::nullopt, true);
    ASSERT_EQ(batch.failures.size(), 1U);
    EXPECT_EQ(batch.failures[0].input, 1U);
    EXPECT_EQ(batch.images[1].height, 0U);
    for (const std::size_t i : {0U, 2U}) expect_equal(rgb(batch, i), rgb_of(good), "beside a failure");
  }
}

TEST_P(JpegDecoderContract, DeliversZerosForFailuresWithASize) {
  std::mt19937_64 random(first_seed());
  const Bytes good = random_file(random, {});
  Bytes cut = good;
  cut.resize(cut.size() - 20);
  const Bytes text(20, std::byte{'a'});
  const std::vector<JpegInput> inputs = {
      {text, std::nullopt, false}, {good, std::nullopt, false}, {cut, std::nullopt, false}};
  JpegDecodeOptions options;
  options.height = options.width = 8;
  options.report_failures = true;
  JpegDecoder decoder = this->decoder();
  const JpegBatch batch = decoder.decode(inputs, options);
  ASSERT_EQ(batch.failures.size(), 2U);
  EXPECT_EQ(bytes_of(batch, 0), std::vector<std::byte>(8 * 8 * 3));
  EXPECT_EQ(bytes_of(batch, 2), std::vector<std::byte>(8 * 8 * 3));
  EXPECT_EQ(bytes_of(batch, 1), resized(rgb_of(good), 8, 8, DType::u8, Layout::nhwc, {}));
}

TEST_P(JpegDecoderContract, DecodesNothing) {
  JpegDecoder decoder = this->decoder();
  EXPECT_TRUE(decoder.decode({}).images.empty());
}

TEST_P(JpegDecoderContract, RefusesOptions) {
  std::mt19937_64 random(first_seed());
  const Bytes good = random_file(random, {});
  const std::vector<JpegInput> inputs = {{good, std::nullopt, false}};
  JpegDecoder decoder = this->decoder();
  const auto expect = [&](const char* piece, auto change) {
    JpegDecodeOptions options;
    change(options);
    EXPECT_SHARD_ERROR(decoder.decode(inputs, options), ErrorCode::invalid_argument, piece);
  };
  expect("height is 5 and width 0", [](JpegDecodeOptions& o) { o.height = 5; });
  expect("dtype is u16", [](JpegDecodeOptions& o) { o.dtype = DType::u16; });
  expect("layout must be", [](JpegDecodeOptions& o) { o.layout = Layout::tensor; });
  expect("a normalisation is for", [](JpegDecodeOptions& o) { o.normalization = Normalization{}; });
  expect("std has a 0", [](JpegDecodeOptions& o) {
    o.dtype = DType::f32;
    o.normalization = Normalization{{0, 0, 0}, {1, 0, 1}};
  });
}

// Damaged files: what the kernels refuse the host judges.
TEST_P(JpegDecoderContract, SaysOfDamagedFilesWhatTheImageContractSays) {
  std::vector<Bytes> files;
  const std::uint64_t count = rounds(300, 60);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::mt19937_64 random(first_seed() + i);
    Bytes file = random_file(random, random_options(random, 100));
    for (int k = 0; k < 4; ++k)
      file[file.size() / 2 + random() % (file.size() / 2)] = static_cast<std::byte>(random());
    files.push_back(std::move(file));
  }
  std::vector<JpegInput> inputs;
  for (const Bytes& file : files) inputs.push_back({file, std::nullopt, false});
  JpegDecoder decoder = this->decoder();
  JpegDecodeOptions options;
  options.report_failures = true;
  const JpegBatch batch = decoder.decode(inputs, options);
  std::vector<bool> failed(files.size());
  for (const JpegBatch::Failure& failure : batch.failures) failed[failure.input] = true;
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::optional<Rgb> right;
    try {
      right = rgb_of(files[i]);
    } catch (const Error&) {
    }
    ASSERT_EQ(failed[i], !right.has_value()) << i;
    if (right) expect_equal(rgb(batch, i), *right, std::to_string(i));
  }
  EXPECT_FALSE(batch.failures.empty());
}

}  // namespace shard::testing
