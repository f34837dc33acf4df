#include "harness/throttle.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/core.h>

#include "base/text/quote.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

// Requests so near to each other are one, to a disk with a queue and a system that reads ahead.
constexpr std::uint64_t kNear = std::uint64_t{32} << 20U;

[[noreturn]] void refuse(const std::string& text) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("--emulate {}: expected hdd, sata, nvme, nfs, http or bw=150MB/s,lat=8ms[,depth=N]",
                          quoted(text)));
}

// "150MB/s" by its unit.
double measured(std::string_view text, std::initializer_list<std::pair<std::string_view, double>> units,
                const std::string& all) {
  double value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  for (const auto& [name, factor] : units)
    if (error == std::errc{} && value >= 0 && std::string_view(end, last) == name) return value * factor;
  refuse(all);
}

}  // namespace

std::string EmulatedTier::description() const {
  return fmt::format("{:g} MB/s, {:g} ms, {}", bytes_per_second / 1e6, latency_seconds * 1e3,
                     depth == 1 ? "one at a time" : fmt::format("{} at a time", depth));
}

EmulatedTier parse_emulated(const std::string& text) {
  for (const EmulatedTier& known :
       {EmulatedTier{"hdd", 200e6, 8e-3, 1}, EmulatedTier{"sata", 530e6, 0.1e-3, 32},
        EmulatedTier{"nvme", 3.5e9, 0.08e-3, 128}, EmulatedTier{"nfs", 118e6, 0.5e-3, 32},
        EmulatedTier{"http", 100e6, 30e-3, 64}})
    if (text == known.name) return known;
  EmulatedTier tier;
  tier.name = text;
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    const std::string_view key = item.substr(0, item.find('='));
    item.remove_prefix(std::min(item.size(), key.size() + 1));
    if (key == "bw") {
      tier.bytes_per_second =
          measured(item, {{"KB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"MiB/s", 1048576.0}}, text);
    } else if (key == "lat") {
      tier.latency_seconds = measured(item, {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}}, text);
    } else if (const double value = key == "depth" ? measured(item, {{"", 1}}, text) : 0;
               value >= 1 && value <= 65536) {
      tier.depth = static_cast<unsigned>(value);
    } else {
      refuse(text);
    }
  }
  if (tier.bytes_per_second < 1e3 || tier.latency_seconds > 60) refuse(text);
  return tier;
}

Throttle::Throttle(EmulatedTier tier) : tier_(std::move(tier)) {
  for (unsigned i = 0; i < tier_.depth; ++i) channels_.push({});
}

Throttle::Clock::time_point Throttle::due(std::uint64_t file, std::uint64_t offset, std::uint64_t size_bytes,
                                          Clock::time_point now) {
  const auto seconds = [](double value) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(value));
  };
  const std::scoped_lock lock(mutex_);
  const bool goes_on = file == file_ && offset + kNear >= end_ && offset <= end_ + kNear;
  end_ = goes_on ? std::max(end_, offset + size_bytes) : offset + size_bytes;
  file_ = file;
  const Clock::time_point begin = std::max(now, channels_.top());
  channels_.pop();
  const Clock::time_point found = begin + (goes_on ? Clock::duration{} : seconds(tier_.latency_seconds));
  link_free_ =
      std::max(link_free_, found) + seconds(static_cast<double>(size_bytes) / tier_.bytes_per_second);
  channels_.push(link_free_);
  return link_free_;
}

void Throttle::pass(std::uint64_t file, std::uint64_t offset, std::uint64_t size_bytes) {
  std::this_thread::sleep_until(due(file, offset, size_bytes, Clock::now()));
}

}  // namespace shard::bench
