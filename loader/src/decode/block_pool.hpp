// Device memory of batches that their holders gave back, for later batches. To allocate and free it each time
// would make the driver wait for all work on the device.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "shard/loader/device.hpp"

namespace shard {

// Thread safe. Memory that was taken keeps pool and device alive.
class BlockPool : public std::enable_shared_from_this<BlockPool> {
 public:
  // `last_stream`: asked when memory is given back: the stream with the last work that uses it. Null, or
  // none: the memory is freed; on the host it can be used again at once.
  BlockPool(std::shared_ptr<Device> device, std::function<std::optional<StreamRef>()> last_stream)
      : device_(std::move(device)), last_stream_(std::move(last_stream)) {}

  struct Taken {
    std::shared_ptr<Block> block;
    Event ready;  // before it is written
  };
  // At least `size` bytes. Errors: resource.
  Taken take(std::uint64_t size);

 private:
  struct Idle {
    std::unique_ptr<Block> block;
    Event ready;
  };
  static constexpr std::size_t kMostIdle = 8;

  void give_back(std::unique_ptr<Block> block) noexcept;

  std::shared_ptr<Device> device_;
  std::function<std::optional<StreamRef>()> last_stream_;
  std::mutex mutex_;
  std::vector<Idle> idle_;  // guarded by mutex_
};

}  // namespace shard
