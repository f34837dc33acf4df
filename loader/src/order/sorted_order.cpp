// An order whose windows are sorted by size (length_windows.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/digest/mix64.hpp"
#include "order/epoch_key.hpp"
#include "order/length_windows.hpp"
#include "order/order_cache.hpp"
#include "shard/error.hpp"

namespace shard {

Order::Order(std::span<const std::uint64_t> shard_samples, const OrderOptions& options,
             std::vector<std::uint32_t> sizes, std::uint64_t length_window)
    : Order(shard_samples, options) {
  if (options.repeats != 1 || options.partition != Partition::global)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("length_window needs repeats 1 and partition global, and they are {} and {}: leave "
                    "length_window or these out",
                    options.repeats,
                    words_of(options.partition)[static_cast<std::size_t>(options.partition)]));
  if (sizes.size() != samples_ || length_window == 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("length_window is {}, with the sizes of {} samples; it must be at least 1, and "
                            "there are {} samples",
                            length_window, sizes.size(), samples_));
  windows_ = std::make_shared<const LengthWindows>(std::move(sizes), length_window,
                                                   options.batch_size * options.world_size);
}

std::shared_ptr<const Order::SortedWindow> Order::window(std::uint64_t epoch, std::uint64_t number) const {
  {
    const std::lock_guard lock(cache_->mutex);
    auto cached = std::static_pointer_cast<const SortedWindow>(cache_->window);
    if (cached && cached->epoch == epoch && cached->number == number) return cached;
  }
  auto fresh = std::make_shared<SortedWindow>();
  fresh->epoch = epoch;
  fresh->number = number;
  // Tail drop: what is left out is what an order without windows leaves out.
  const std::uint64_t end =
      options_.tail == Tail::drop ? batches() * options_.batch_size * options_.world_size : positions();
  const std::uint64_t begin = number * windows_->positions();
  BatchIndices whole;
  whole.samples.resize(std::min(windows_->positions(), end - begin));
  std::iota(whole.samples.begin(), whole.samples.end(), begin);
  to_samples(epoch, whole);
  const std::uint64_t key = epoch_key(options_.seed, epoch, mix64(kLengthWindows) ^ number);
  for (const std::uint64_t place :
       windows_->arranged(whole.samples, key, options_.order != OrderMode::sequential)) {
    fresh->samples.push_back(whole.samples[place]);
    fresh->draws.push_back(whole.draws[place]);
  }
  const std::lock_guard lock(cache_->mutex);
  cache_->window = fresh;
  return fresh;
}

}  // namespace shard
