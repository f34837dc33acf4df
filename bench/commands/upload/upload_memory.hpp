// The same bytes in every kind of host memory from which a device can copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "shard/loader/device.hpp"

namespace shard::bench {

enum class UploadMemory : std::uint8_t;

// Pageable: from the heap. Pinned: allocated by the device. Registered: a file without a name in the folder
// for temporary files, mapped read-only and registered in place, as shards are.
class UploadSource {
 public:
  // Errors: resource, io.
  UploadSource(Device& device, std::uint64_t bytes);
  UploadSource(const UploadSource&) = delete;
  UploadSource& operator=(const UploadSource&) = delete;
  ~UploadSource();
  const std::byte* data(UploadMemory memory) const noexcept;
  const std::string& refusal() const noexcept { return refusal_; }  // why nothing is registered; empty: it is

 private:
  void map_file(Device& device);
  std::uint64_t bytes_;
  std::vector<std::byte> pageable_;
  std::unique_ptr<Block> pinned_;
  void* mapped_ = nullptr;
  std::unique_ptr<Registration> registration_;
  std::string refusal_;
};

// 0 to n - 1 in an order that no prefetcher can guess, the same each time.
std::vector<std::uint64_t> shuffled_places(std::uint64_t n);

}  // namespace shard::bench
