// Pinned host memory and device memory.
#pragma once

#include <cstdint>

#include "cuda/context.hpp"
#include "shard/loader/device.hpp"

namespace shard {

// Pinned memory, for every device. Throws Error(resource).
class PinnedBlock final : public Block {
 public:
  PinnedBlock(const CudaContext& context, std::uint64_t size);
  PinnedBlock(const PinnedBlock&) = delete;
  PinnedBlock& operator=(const PinnedBlock&) = delete;
  ~PinnedBlock() override;
  std::byte* data() const noexcept override { return static_cast<std::byte*>(data_); }
  std::uint64_t size_bytes() const noexcept override { return size_; }

 private:
  const CudaContext context_;
  void* data_ = nullptr;
  std::uint64_t size_;
};

// Memory of the context's device. Throws Error(resource) saying how much is free.
class DeviceBlock final : public Block {
 public:
  DeviceBlock(const CudaContext& context, std::uint64_t size);
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock& operator=(const DeviceBlock&) = delete;
  ~DeviceBlock() override;
  std::byte* data() const noexcept override { return static_cast<std::byte*>(data_); }
  std::uint64_t size_bytes() const noexcept override { return size_; }

 private:
  const CudaContext context_;
  void* data_ = nullptr;
  std::uint64_t size_;
};

}  // namespace shard
