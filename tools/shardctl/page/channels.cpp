#include "shardctl/page/channels.hpp"

#include <algorithm>
#include <cmath>

#include "base/system/parallel.hpp"
#include "shardctl/draw/pixels.hpp"

namespace shard::ctl {
namespace {

struct ChannelWorker {
  std::vector<std::byte> sample;
  std::vector<std::uint8_t> bytes;
  ChannelStatistics statistics;
};

// The mean of `value(byte)` over all that were counted.
template <class Value>
double average(const std::array<std::uint64_t, 256>& count, Value value) {
  double sum = 0;
  double total = 0;
  for (int byte = 0; byte < 256; ++byte) {
    const auto times = static_cast<double>(count[static_cast<std::size_t>(byte)]);
    sum += times * value(byte);
    total += times;
  }
  return total > 0 ? sum / total : 0.0;
}

}  // namespace

double ChannelCounts::mean() const {
  return average(count, [](int byte) { return byte; });
}

double ChannelCounts::deviation() const {
  const double middle = mean();
  return std::sqrt(average(count, [&](int byte) { return (byte - middle) * (byte - middle); }));
}

int ChannelCounts::lowest() const {
  const auto at = std::find_if(count.begin(), count.end(), [](std::uint64_t times) { return times > 0; });
  return at == count.end() ? 0 : static_cast<int>(at - count.begin());
}

int ChannelCounts::highest() const {
  const auto at = std::find_if(count.rbegin(), count.rend(), [](std::uint64_t times) { return times > 0; });
  return at == count.rend() ? 0 : static_cast<int>(count.rend() - at) - 1;
}

ChannelStatistics measure_channels(const Source& source, std::uint64_t most, unsigned threads,
                                   Damage& damage) {
  const SampleSpec& spec = source.info().spec;
  const Denormalizer denormalizer(spec, source.info().normalization);
  ChannelWorker start;
  start.statistics.channels.resize(spec.channels);
  std::vector<ChannelWorker> workers(threads, start);
  const std::uint64_t count = std::min(most, source.size());
  parallel_for(threads, count, [&](unsigned thread, std::uint64_t number) {
    auto& [sample, bytes, statistics] = workers[thread];
    const auto index = static_cast<std::uint64_t>(
        static_cast<double>(number) * static_cast<double>(source.size()) / static_cast<double>(count));
    SampleSpec of;
    if (!damage.survives(index, [&, &to = sample] { of = source.read(index, to); })) return;
    bytes.resize(static_cast<std::size_t>(of.elements()));
    denormalizer.bytes(sample, bytes);
    for (std::size_t i = 0; i < bytes.size(); ++i) ++statistics.channels[i % spec.channels].count[bytes[i]];
    ++statistics.samples;
  });
  ChannelStatistics all = start.statistics;
  for (const ChannelWorker& worker : workers) {
    all.samples += worker.statistics.samples;
    for (std::size_t channel = 0; channel < all.channels.size(); ++channel) {
      for (std::size_t byte = 0; byte < 256; ++byte)
        all.channels[channel].count[byte] += worker.statistics.channels[channel].count[byte];
    }
  }
  return all;
}

}  // namespace shard::ctl
