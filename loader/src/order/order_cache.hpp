// What an Order keeps of the epoch and the window that were asked for last: several batches need the same.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "shard/loader/order.hpp"

namespace shard {

struct Order::SortedWindow {
  std::uint64_t epoch = 0;
  std::uint64_t number = 0;
  std::vector<std::uint64_t> samples;
  std::vector<std::uint64_t> draws;  // BatchIndices::draws
};

struct TableCache {
  std::mutex mutex;
  std::shared_ptr<const void> table;
  std::shared_ptr<const void> window;
};

}  // namespace shard
