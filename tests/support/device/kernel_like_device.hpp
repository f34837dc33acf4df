// The host device with the kernels' way of decoding JPEG files (Stream::decode_jpeg), by their reference: so
// that what surrounds the kernels is tested without a GPU.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "jpeg/colour.hpp"
#include "jpeg/decode.hpp"
#include "jpeg/lanes/lane_index.hpp"
#include "shard/error.hpp"
#include "shard/loader/device.hpp"
#include "support/device/forwarding_stream.hpp"
#include "transform/jpeg_work.hpp"

namespace shard::testing {

class KernelLikeDevice final : public Device {
 public:
  explicit KernelLikeDevice(std::shared_ptr<Device> inner) : inner_(std::move(inner)), info_(inner_->info()) {
    info_.decodes_jpeg = true;
  }
  // Images that the kernels were given.
  std::size_t decoded() const { return decoded_; }
  // From now on all of `range` counts as pinned.
  void pin(std::span<const std::byte> range) { pinned_.push_back(range); }
  // Nothing is done before copies have been queued so often: as if kernels took long.
  void work_until_copy(int count) { copies_left_ = count; }

  const DeviceInfo& info() const noexcept override { return info_; }
  std::unique_ptr<Block> allocate_pinned(std::uint64_t size) override {
    return inner_->allocate_pinned(size);
  }
  std::unique_ptr<Block> allocate_device(std::uint64_t size) override {
    return inner_->allocate_device(size);
  }
  std::uint64_t free_memory_bytes() override { return inner_->free_memory_bytes(); }
  std::unique_ptr<Registration> register_read_only(std::span<const std::byte> range,
                                                   const std::stop_token& stop) override {
    return inner_->register_read_only(range, stop);
  }
  bool is_pinned(std::span<const std::byte> range) override {
    return std::any_of(pinned_.begin(), pinned_.end(), [&](std::span<const std::byte> one) {
      return range.data() >= one.data() && range.data() + range.size() <= one.data() + one.size();
    });
  }
  std::unique_ptr<Stream> create_stream() override {
    return std::make_unique<KernelStream>(*this, inner_->create_stream());
  }
  void check() override { inner_->check(); }

 private:
  class KernelStream final : public ForwardingStream {
   public:
    KernelStream(KernelLikeDevice& device, std::unique_ptr<Stream> inner)
        : ForwardingStream(std::move(inner)), device_(device) {}
    std::uint64_t jpeg_workspace_bytes(const jpeg::FrameFile& file) const override { return file.bytes; }
    void copy(std::span<const CopyItem> items) override {
      ForwardingStream::copy(items);
      --device_.copies_left_;
    }
    Event record() override {
      return Event(std::make_shared<LateEvent>(device_, ForwardingStream::record()));
    }
    void decode_jpeg(const JpegWork& work) override {
      synchronize();
      std::uint64_t needed = 0;
      for (std::size_t i = 0; i < work.images.size(); ++i) {
        needed += work.images[i].file.bytes;
        work.faults[i] = static_cast<std::uint32_t>(decode(work.images[i]));
      }
      EXPECT_GE(work.workspace_bytes, needed);
      std::memset(work.workspace, 0xA5, work.workspace_bytes);
      device_.decoded_ += work.images.size();
    }

   private:
    static jpeg::Fault decode(const JpegWork::Image& image) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(image.data) % 16, 0U);
      const std::span<const std::byte> file(image.data, image.file.bytes);
      const jpeg::Header header = jpeg::parse_header(file);
      jpeg::LaneIndex lanes;
      const jpeg::LaneIndex::Result made = lanes.build(file, header);
      if (made.fault != jpeg::Fault::none) return made.fault;
      jpeg::Decoder decoder;
      const auto stored = decoder.decode(
          file, header, jpeg::parse_index(made.index, header.layout, header.data_offset, file.size()));
      const std::uint32_t channels = header.layout.channels();
      for (std::uint32_t y = image.box.top; y < image.box.top + image.box.height; ++y)
        for (std::uint32_t x = image.box.left; x < image.box.left + image.box.width; ++x) {
          const jpeg::Pixel place = jpeg::stored_place(image.file, {x, y});
          std::array<std::uint8_t, 4> pixel{};
          std::memcpy(pixel.data(),
                      stored.data() + (std::size_t{place.y} * image.file.width() + place.x) * channels,
                      channels);
          jpeg::make_rgb(channels, pixel.data());
          std::memcpy(image.pixels + (std::size_t{y} * image.file.upright_width() + x) * 3, pixel.data(), 3);
        }
      return jpeg::Fault::none;
    }

    KernelLikeDevice& device_;
  };

  class LateEvent final : public Event::Impl {
   public:
    LateEvent(const KernelLikeDevice& device, Event inner) : device_(device), inner_(std::move(inner)) {}
    bool done() override { return device_.copies_left_ <= 0 && inner_.done(); }
    void wait() override {
      const auto begin = std::chrono::steady_clock::now();
      while (device_.copies_left_ > 0 && std::chrono::steady_clock::now() - begin < kPatience)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_LE(device_.copies_left_, 0) << "the kernels were waited for, and the copy did not come";
      inner_.wait();
    }
    void* native() noexcept override { return inner_.impl() != nullptr ? inner_.impl()->native() : nullptr; }

   private:
    static constexpr std::chrono::seconds kPatience{20};
    const KernelLikeDevice& device_;
    Event inner_;
  };

  std::shared_ptr<Device> inner_;
  DeviceInfo info_;
  std::atomic<int> copies_left_{0};
  std::vector<std::span<const std::byte>> pinned_;
  std::size_t decoded_ = 0;
};

}  // namespace shard::testing
