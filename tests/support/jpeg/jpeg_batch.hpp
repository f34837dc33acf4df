// A batch of JPEGs for the kernels, in memory of its own.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "base/bytes.hpp"
#include "cuda/kernels/jpeg.hpp"
#include "cuda/kernels/jpeg/image.hpp"
#include "jpeg/colour.hpp"
#include "jpeg/frame.hpp"
#include "support/jpeg/jpeg_decoding.hpp"
#include "support/jpeg/random_jpeg.hpp"

namespace shard::testing {

inline void check(cudaError_t error) { ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error); }

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
  // The file as it is, without its index.
  bool plain = false;

  std::uint32_t delivered() const { return channels != 0 ? channels : image->header.layout.channels(); }
  jpeg::FrameFile file() const { return jpeg::frame_file_of(image->header, image->file.size(), orientation); }
};

inline jpeg::PixelBox whole(const Indexed& image) {
  return {0, 0, image.header.layout.width, image.header.layout.height};
}

// A batch in memory of its own: frames, then whole images.
class Batch {
 public:
  explicit Batch(const std::vector<Wanted>& wanted) : wanted_(wanted) {
    std::size_t frame_bytes = 0;
    for (const Wanted& one : wanted) {
      offsets_.push_back(frame_bytes);
      frame_bytes += one.plain ? round_up(one.image->file.size(), 16) : jpeg::frame_bytes(one.file());
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
      const auto frame =
          wanted[i].plain ? image.file : jpeg::make_frame(file, image.file, image.result.index);
      std::memcpy(pinned_->data() + offsets_[i], frame.data(), frame.size());
      sources.push_back({file, wanted[i].box, frames_->data() + offsets_[i], nullptr,
                         pixels_->data() + pixel_offsets_[i], wanted[i].delivered(), wanted[i].plain});
      most += gpu::jpeg_workspace_bytes(file, wanted[i].plain);
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
  void launch(cudaStream_t stream = nullptr) {
    if (!index_only_) return gpu::launch_jpeg(launch_, stream);
    gpu::launch_jpeg_headers(launch_, stream);
    gpu::launch_jpeg_lanes(launch_, stream);
  }
  // From now on nothing is decoded.
  void index_only() { index_only_ = true; }
  void fetch() {
    check(cudaDeviceSynchronize());
    values_.resize(pixel_bytes_);
    check(cudaMemcpy(values_.data(), pixels_->data(), pixel_bytes_, cudaMemcpyDeviceToHost));
    faults_.resize(wanted_.size());
    check(cudaMemcpy(faults_.data(), launch_.faults, faults_.size() * 4, cudaMemcpyDeviceToHost));
  }
  std::uint32_t fault(std::size_t i) const { return faults_[i]; }
  // That was used.
  std::vector<std::byte> index(std::size_t i) const {
    const auto* tasks = reinterpret_cast<const gpu::JpegTask*>(pinned_parameters_->data());
    std::vector<std::byte> bytes(jpeg::index_bytes(wanted_[i].image->header.layout));
    check(cudaMemcpy(bytes.data(), tasks[i].index, bytes.size(), cudaMemcpyDeviceToHost));
    return bytes;
  }
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
  bool index_only_ = false;
  std::vector<std::uint8_t> values_;
  std::vector<std::uint32_t> faults_;
};

// What the kernels must deliver, by the reference and pixel by pixel.
inline JpegPixels expected(const Wanted& wanted) {
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

inline std::vector<Indexed> random_images(std::uint64_t seed, std::size_t count, std::uint32_t most_pixels) {
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

inline double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Photographs per second of `streams` batches in flight.
inline double rate(std::vector<std::unique_ptr<Batch>>& batches, std::size_t photos, bool copies) {
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

}  // namespace shard::testing
