// The kernels decode JPEGs as libjpeg-turbo, bit for bit, whole and in part; and survive any bytes.
//
// SHARD_TEST_PHOTOS=FOLDER: every *.jpg of baseline below it too, and how fast.
#include "cuda/kernels/jpeg.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/bytes.hpp"
#include "jpeg/colour.hpp"
#include "jpeg/frame.hpp"
#include "jpeg_decoding.hpp"
#include "random_jpeg.hpp"
#include "rounds.hpp"
#include "shard/error.hpp"

namespace shard::testing {
namespace {

void check(cudaError_t error) { ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error); }

class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t size) {
    check(cudaMalloc(&data_, size + 16));
    // What kernels leave unwritten is seen.
    check(cudaMemset(data_, 0xA5, size + 16));
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() { cudaFree(data_); }
  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  void* data_ = nullptr;
};

class PinnedMemory {
 public:
  explicit PinnedMemory(std::size_t size) { check(cudaMallocHost(&data_, size + 16)); }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  ~PinnedMemory() { cudaFreeHost(data_); }
  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  void* data_ = nullptr;
};

// `box`: of the upright image.
struct Wanted {
  const Indexed* image = nullptr;
  jpeg::PixelBox box;
  std::uint32_t channels = 0;  // 0: those of the file
  std::uint32_t orientation = 1;

  std::uint32_t delivered() const { return channels != 0 ? channels : image->header.layout.channels(); }
  jpeg::FrameFile file() const { return jpeg::frame_file_of(image->header, image->file.size(), orientation); }
};

jpeg::PixelBox whole(const Indexed& image) {
  return {0, 0, image.header.layout.width, image.header.layout.height};
}

// A batch in memory of its own: frames, then whole images.
class Batch {
 public:
  explicit Batch(const std::vector<Wanted>& wanted) : wanted_(wanted) {
    std::size_t frame_bytes = 0;
    for (const Wanted& one : wanted) {
      offsets_.push_back(frame_bytes);
      frame_bytes += jpeg::frame_bytes(one.file());
      pixel_offsets_.push_back(pixel_bytes_);
      pixel_bytes_ += std::size_t{one.file().width()} * one.file().height() * one.delivered();
    }
    frame_bytes_ = frame_bytes;
    pinned_ = std::make_unique<PinnedMemory>(frame_bytes);
    frames_ = std::make_unique<DeviceMemory>(frame_bytes);
    pixels_ = std::make_unique<DeviceMemory>(pixel_bytes_);
    std::vector<gpu::JpegSource> sources;
    std::uint64_t most = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const Indexed& image = *wanted[i].image;
      const auto file = wanted[i].file();
      const auto frame = jpeg::make_frame(file, image.file, image.result.index);
      std::memcpy(pinned_->data() + offsets_[i], frame.data(), frame.size());
      sources.push_back({file, wanted[i].box, frames_->data() + offsets_[i], nullptr,
                         pixels_->data() + pixel_offsets_[i], wanted[i].delivered()});
      most += gpu::jpeg_workspace_bytes(file);
    }
    const gpu::JpegPlan plan(sources);
    EXPECT_LE(plan.workspace_bytes(), most);
    parameter_bytes_ = plan.parameter_bytes();
    pinned_parameters_ = std::make_unique<PinnedMemory>(parameter_bytes_);
    parameters_ = std::make_unique<DeviceMemory>(parameter_bytes_);
    workspace_ = std::make_unique<DeviceMemory>(plan.workspace_bytes());
    launch_ = plan.write(pinned_parameters_->data(), parameters_->data(), workspace_->data());
  }

  void copy(cudaStream_t stream = nullptr) {
    check(cudaMemcpyAsync(frames_->data(), pinned_->data(), frame_bytes_, cudaMemcpyHostToDevice, stream));
    check(cudaMemcpyAsync(parameters_->data(), pinned_parameters_->data(), parameter_bytes_,
                          cudaMemcpyHostToDevice, stream));
  }
  void launch(cudaStream_t stream = nullptr) { gpu::launch_jpeg(launch_, stream); }
  void fetch() {
    check(cudaDeviceSynchronize());
    values_.resize(pixel_bytes_);
    check(cudaMemcpy(values_.data(), pixels_->data(), pixel_bytes_, cudaMemcpyDeviceToHost));
    faults_.resize(wanted_.size());
    check(cudaMemcpy(faults_.data(), launch_.faults, faults_.size() * 4, cudaMemcpyDeviceToHost));
  }
  std::uint32_t fault(std::size_t i) const { return faults_[i]; }
  // Of the box. What lies outside of it must not have been written.
  JpegPixels pixels(std::size_t i) const {
    const jpeg::PixelBox& box = wanted_[i].box;
    const std::uint32_t channels = wanted_[i].delivered();
    const std::uint32_t width = wanted_[i].file().upright_width();
    JpegPixels result{box.width, box.height, channels, {}};
    std::size_t at = pixel_offsets_[i];
    for (std::uint32_t y = 0; y < wanted_[i].file().upright_height(); ++y)
      for (std::uint32_t x = 0; x < width; ++x)
        for (std::uint32_t c = 0; c < channels; ++c, ++at)
          if (x - box.left < box.width && y - box.top < box.height)
            result.values.push_back(values_[at]);
          else
            EXPECT_EQ(values_[at], 0xA5) << i << ": pixel " << x << ", " << y;
    return result;
  }

 private:
  std::vector<Wanted> wanted_;
  std::vector<std::size_t> offsets_;
  std::vector<std::size_t> pixel_offsets_;
  std::size_t frame_bytes_ = 0;
  std::size_t pixel_bytes_ = 0;
  std::size_t parameter_bytes_ = 0;
  std::unique_ptr<PinnedMemory> pinned_;
  std::unique_ptr<PinnedMemory> pinned_parameters_;
  std::unique_ptr<DeviceMemory> frames_;
  std::unique_ptr<DeviceMemory> pixels_;
  std::unique_ptr<DeviceMemory> parameters_;
  std::unique_ptr<DeviceMemory> workspace_;
  gpu::JpegLaunch launch_;
  std::vector<std::uint8_t> values_;
  std::vector<std::uint32_t> faults_;
};

// What the kernels must deliver, by the reference and pixel by pixel.
JpegPixels expected(const Wanted& wanted) {
  const JpegPixels stored = wanted.image->decode();
  const jpeg::FrameFile file = wanted.file();
  const std::uint32_t channels = wanted.delivered();
  JpegPixels result{wanted.box.width, wanted.box.height, channels, {}};
  for (std::uint32_t y = 0; y < wanted.box.height; ++y)
    for (std::uint32_t x = 0; x < wanted.box.width; ++x) {
      const jpeg::Pixel place = jpeg::stored_place(file, {wanted.box.left + x, wanted.box.top + y});
      std::uint8_t pixel[4] = {};
      const std::size_t at = (std::size_t{place.y} * stored.width + place.x) * stored.channels;
      for (std::uint32_t c = 0; c < stored.channels; ++c) pixel[c] = stored.values[at + c];
      if (channels == 3) jpeg::make_rgb(stored.channels, pixel);
      result.values.insert(result.values.end(), pixel, pixel + channels);
    }
  return result;
}

class JpegKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no CUDA device";
  }
};

std::vector<Indexed> random_images(std::uint64_t seed, std::size_t count, std::uint32_t most_pixels) {
  std::vector<Indexed> images;
  for (std::size_t i = 0; i < count; ++i) {
    std::mt19937_64 random(seed * 1000 + i);
    RandomJpegOptions odd;
    odd.coefficients = static_cast<Coefficients>(i % 3);
    odd.most_pixels = most_pixels;
    images.emplace_back(i % 2 == 0 ? random_jpeg(random, odd)
                                   : random_file(random, random_options(random, most_pixels)));
  }
  return images;
}

TEST_F(JpegKernels, EqualLibjpeg) {
  const std::uint64_t count = rounds(12, 2);
  for (std::uint64_t round = 0; round < count; ++round) {
    const std::vector<Indexed> images = random_images(first_seed() + round, 200, round % 3 == 0 ? 300 : 70);
    std::vector<Wanted> wanted;
    for (const Indexed& image : images) wanted.push_back({&image, whole(image)});
    Batch batch(wanted);
    batch.copy();
    batch.launch();
    batch.fetch();
    for (std::size_t i = 0; i < images.size(); ++i) {
      ASSERT_EQ(batch.fault(i), 0U) << "round " << round << ", image " << i;
      ASSERT_EQ(batch.pixels(i), decode_jpeg(images[i].file)) << "round " << round << ", image " << i;
    }
  }
}

TEST_F(JpegKernels, DecodeBoxesAsTheReference) {
  const std::vector<Indexed> images = random_images(first_seed(), 100, 400);
  std::mt19937_64 random(first_seed());
  std::vector<Wanted> wanted;
  for (const Indexed& image : images)
    for (std::uint32_t i = 0; i < 8; ++i) {
      Wanted one{&image, {}, random() % 2 == 0 ? 3U : 0U, random() % 2 == 0 ? 1U : 1 + i};
      jpeg::PixelBox& box = one.box;
      box = {0, 0, one.file().upright_width(), one.file().upright_height()};
      if (random() % 4 != 0) {
        box.left = static_cast<std::uint32_t>(random() % box.width);
        box.top = static_cast<std::uint32_t>(random() % box.height);
        box.width = 1 + static_cast<std::uint32_t>(random() % (box.width - box.left));
        box.height = 1 + static_cast<std::uint32_t>(random() % (box.height - box.top));
      }
      wanted.push_back(one);
    }
  Batch batch(wanted);
  batch.copy();
  batch.launch();
  batch.fetch();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(batch.fault(i), 0U) << i;
    ASSERT_EQ(batch.pixels(i), expected(wanted[i])) << i;
  }
}

// A frame whose header is another one than the head of the shard or the index says.
TEST_F(JpegKernels, SayWhichHeadersDoNotFit) {
  std::vector<Indexed> images = random_images(first_seed() + 5, 60, 100);
  std::mt19937_64 random(first_seed());
  std::vector<bool> damaged;
  for (std::size_t i = 0; i < images.size(); ++i) {
    Indexed& image = images[i];
    const std::size_t sof = [&] {
      for (std::size_t at = 2;; ++at)
        if (image.file[at] == std::byte{0xFF} && (image.file[at + 1] & std::byte{0xFE}) == std::byte{0xC0})
          return at + 4;
    }();
    damaged.push_back(i % 5 != 0);
    if (i % 5 == 1) image.file[sof + 4] ^= std::byte{1};    // width
    if (i % 5 == 2) image.file[0] = std::byte{0};           // SOI
    if (i % 5 == 3) image.result.index[8] ^= std::byte{1};  // where data begin
    if (i % 5 == 4) image.result.index[16 + 4 * image.header.layout.pieces()] ^= std::byte{1};  // predictor
  }
  std::vector<Wanted> wanted;
  for (const Indexed& image : images) wanted.push_back({&image, whole(image)});
  Batch batch(wanted);
  batch.copy();
  batch.launch();
  batch.fetch();
  for (std::size_t i = 0; i < images.size(); ++i)
    EXPECT_EQ(batch.fault(i), damaged[i] ? static_cast<std::uint32_t>(jpeg::Fault::header) : 0U) << i;
}

TEST_F(JpegKernels, SayWhichImagesAreDamaged) {
  std::vector<Indexed> images = random_images(first_seed() + 77, 400, 120);
  std::mt19937_64 random(first_seed());
  for (std::size_t i = 0; i < images.size(); ++i) {
    if (i % 4 == 0) continue;
    Indexed& image = images[i];
    auto& bytes = i % 4 == 1 ? image.result.index : image.file;
    const std::size_t first = i % 4 == 1 ? 16 : image.header.data_offset;
    const std::size_t count = 1 + random() % 40;
    for (std::size_t k = 0; k < count; ++k)
      bytes[first + random() % (bytes.size() - first)] = static_cast<std::byte>(random());
  }
  std::vector<Wanted> wanted;
  for (const Indexed& image : images) wanted.push_back({&image, whole(image)});
  Batch batch(wanted);
  batch.copy();
  batch.launch();
  batch.fetch();
  std::size_t damaged = 0;
  for (std::size_t i = 0; i < images.size(); ++i) {
    bool good = false;
    JpegPixels right;
    try {
      right = images[i].decode();
      good = true;
    } catch (const Error&) {
      ++damaged;
    }
    EXPECT_TRUE(good || i % 4 != 0) << i;
    if (good) {
      // parse_index() refuses more than the kernels see, never less.
      ASSERT_EQ(batch.fault(i), 0U) << i;
      ASSERT_EQ(batch.pixels(i), right) << i;
    } else if (i % 4 != 1) {
      ASSERT_NE(batch.fault(i), 0U) << i;
    }
  }
  EXPECT_GT(damaged, images.size() / 2);
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Photographs per second of `streams` batches in flight.
double rate(std::vector<std::unique_ptr<Batch>>& batches, std::size_t photos, bool copies) {
  std::vector<cudaStream_t> streams(batches.size());
  for (cudaStream_t& stream : streams) check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  double best = 0;
  for (int repetition = 0; repetition < 4; ++repetition) {
    check(cudaDeviceSynchronize());
    const double begin = seconds();
    std::size_t done = 0;
    while (seconds() - begin < 0.5) {
      for (std::size_t i = 0; i < batches.size(); ++i) {
        check(cudaStreamSynchronize(streams[i]));
        if (copies) batches[i]->copy(streams[i]);
        batches[i]->launch(streams[i]);
        done += photos;
      }
    }
    check(cudaDeviceSynchronize());
    best = std::max(best, static_cast<double>(done) / (seconds() - begin));
  }
  for (const cudaStream_t stream : streams) check(cudaStreamDestroy(stream));
  return best;
}

TEST_F(JpegKernels, EqualLibjpegForPhotographs) {
  const char* const folder = std::getenv("SHARD_TEST_PHOTOS");
  if (folder == nullptr) GTEST_SKIP() << "SHARD_TEST_PHOTOS names no folder";
  std::vector<Indexed> images;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.path().extension() != ".jpg") continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    const auto bytes = std::as_bytes(std::span(text));
    try {
      images.emplace_back(std::vector<std::byte>(bytes.begin(), bytes.end()));
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::unsupported) << entry.path() << ": " << error.what();
    }
  }
  ASSERT_FALSE(images.empty());
  std::vector<Wanted> wanted;
  for (const Indexed& image : images) wanted.push_back({&image, whole(image)});
  Batch all(wanted);
  all.copy();
  all.launch();
  all.fetch();
  std::uint64_t pixels = 0;
  std::uint64_t different = 0;
  for (std::size_t i = 0; i < images.size(); ++i) {
    EXPECT_EQ(all.fault(i), 0U) << i;
    const JpegPixels right = decode_jpeg(images[i].file, true);
    const JpegPixels ours = all.pixels(i);
    ASSERT_EQ(ours.values.size(), right.values.size());
    pixels += std::uint64_t{right.width} * right.height;
    for (std::size_t k = 0; k < right.values.size(); ++k) different += ours.values[k] != right.values[k];
  }
  EXPECT_EQ(different, 0U);
  std::printf("%zu photographs, %llu pixels, %llu values differ\n", images.size(),
              static_cast<unsigned long long>(pixels), static_cast<unsigned long long>(different));
  std::mt19937_64 random(1);
  for (const std::size_t in_flight : {1U, 2U, 4U, 6U, 8U}) {
    std::vector<std::unique_ptr<Batch>> batches;
    for (std::size_t b = 0; b < in_flight; ++b) {
      std::vector<Wanted> drawn;
      for (int i = 0; i < 256; ++i) {
        const Indexed& image = images[random() % images.size()];
        drawn.push_back({&image, whole(image)});
      }
      batches.push_back(std::make_unique<Batch>(drawn));
    }
    const double with_copies = rate(batches, 256, true);
    std::printf("batches of 256, %zu in flight: %.0f photos/s on the device, %.0f with copies\n", in_flight,
                rate(batches, 256, false), with_copies);
  }
}

}  // namespace
}  // namespace shard::testing
