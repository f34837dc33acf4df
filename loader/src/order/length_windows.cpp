#include "order/length_windows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "base/digest/mix64.hpp"
#include "shard/loader/order.hpp"

namespace shard {

namespace {

// What samples of a window are sorted by, with their place in the window below: the order of equal ones.
std::uint64_t sort_key(std::uint32_t size, std::uint64_t place) noexcept {
  return std::uint64_t{size} << 32U | place;
}
std::uint32_t columns_first(std::uint32_t size) noexcept { return size << 16U | size >> 16U; }

// The smallest number whose square is at least n.
std::uint64_t root_of(std::uint64_t n) noexcept {
  std::uint64_t root = 0;
  while (root * root < n) ++root;
  return root;
}

}  // namespace

LengthWindows::LengthWindows(std::vector<std::uint32_t> sizes, std::uint64_t window,
                             std::uint64_t global_batch)
    : sizes_(std::move(sizes)), global_batch_(global_batch), positions_(round_up(window, global_batch)) {}

std::vector<std::uint64_t> LengthWindows::arranged(std::span<const std::uint64_t> samples, std::uint64_t key,
                                                   bool permuted) const {
  std::vector<std::uint64_t> keys(samples.size());
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = sort_key(sizes_[samples[i]], i);
  std::sort(keys.begin(), keys.end());
  const std::uint64_t batches = (samples.size() + global_batch_ - 1) / global_batch_;
  const std::uint64_t strip = root_of(batches) * global_batch_;
  for (std::size_t begin = 0; begin < keys.size(); begin += strip) {
    const auto first = keys.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = first + static_cast<std::ptrdiff_t>(std::min(strip, keys.size() - begin));
    std::for_each(first, last, [](std::uint64_t& one) {
      one = sort_key(columns_first(static_cast<std::uint32_t>(one >> 32U)), one & 0xFFFFFFFFU);
    });
    std::sort(first, last);
  }
  for (std::uint64_t& one : keys) one &= 0xFFFFFFFFU;
  if (permuted) permute(keys, key);
  return keys;
}

// The whole batches among each other, and the rows of each batch: every rank gets large and small samples.
void LengthWindows::permute(std::span<std::uint64_t> places, std::uint64_t key) const {
  const std::vector<std::uint64_t> sorted(places.begin(), places.end());
  const std::uint64_t whole = places.size() / global_batch_;
  for (std::uint64_t begin = 0; begin < places.size(); begin += global_batch_) {
    const std::uint64_t number = begin / global_batch_;
    const std::uint64_t from = number < whole ? Permutation(whole, mix64(key))(number) : number;
    const std::uint64_t rows = std::min<std::uint64_t>(global_batch_, places.size() - begin);
    const Permutation inside(rows, mix64(key ^ (number + 1)));
    for (std::uint64_t row = 0; row < rows; ++row)
      places[begin + row] = sorted[from * global_batch_ + inside(row)];
  }
}

std::uint64_t LengthWindows::digest() const {
  return xxh3(fmt::format("{} {}", positions_, to_hex(xxh3(std::as_bytes(std::span(sizes_))))));
}

}  // namespace shard
