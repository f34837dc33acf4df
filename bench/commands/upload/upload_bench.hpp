// The rate of the link to a device, by kind of memory, size of a copy, direction and number of devices.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "shard/loader/device.hpp"

namespace shard::bench {

struct UploadOptions {
  std::vector<std::uint64_t> chunks{std::uint64_t{16} << 10U, std::uint64_t{147} << 10U,
                                    std::uint64_t{1} << 20U, std::uint64_t{16} << 20U};
  std::vector<std::uint64_t> batch_sizes{1, 8, 32, 128, 256};
  std::uint64_t sample_bytes = std::uint64_t{3} * 224 * 224;
  std::uint64_t memory_bytes = std::uint64_t{256} << 20U;  // of each kind of memory, at each end
  unsigned repeat = 5;
  double seconds = 0.1;  // of each sample, at least
};

enum class UploadMemory : std::uint8_t { pageable, pinned, registered };
enum class UploadDirection : std::uint8_t { up, down, both };

struct UploadCase {
  UploadMemory memory = UploadMemory::pinned;
  bool batched = false;  // many chunks a call, else one
  UploadDirection direction = UploadDirection::up;
  std::size_t devices = 1;
  std::uint64_t chunk_bytes = 0;
  std::string problem;                   // why it was left out; empty: the samples hold
  std::vector<double> bytes_per_second;  // of all devices and directions together
};
std::string upload_name(
    const UploadCase& one);  // "pinned", "registered, batched", "pinned, both ways, 2 devices"

// The time of one batched copy of a batch's samples from random places in memory, from the call until the
// bytes are on the device, with no other copy in progress.
struct BatchUpload {
  std::uint64_t batch_size = 0;
  UploadMemory memory = UploadMemory::registered;  // pinned if nothing can be registered
  std::vector<double> seconds;
};

struct UploadResult {
  std::vector<UploadCase> cases;
  std::vector<BatchUpload> batches;
  // What the cases are compared with, measured alternately with them: pinned memory to one device in the
  // largest blocks.
  std::vector<double> limit_bytes_per_second;
};

// Chunks are copied to and from places in random order. Before a case is timed, its bytes are compared. A
// case that does not deliver, or that the platform refuses, is left out with a problem. Cases alternate.
// `done` is called after each repeat. Errors: invalid_argument (option and bounds), resource (memory),
// cancelled.
UploadResult bench_upload(std::span<const std::shared_ptr<Device>> devices, const UploadOptions& options,
                          const std::atomic<bool>& cancel,
                          const std::function<void(const UploadResult&)>& done);

}  // namespace shard::bench
