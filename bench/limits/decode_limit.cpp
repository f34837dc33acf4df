#include "limits/decode_limit.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>

#include "base/system/cpu_count.hpp"
#include "base/system/parallel.hpp"
#include "base/system/stopwatch.hpp"
#include "limits/pure_decode.hpp"
#include "shard/convert/inputs.hpp"
#include "shard/image/decode.hpp"

namespace shard::bench {

namespace {

constexpr std::uint64_t kFiles = 4096;
constexpr std::uint64_t kBytes = std::uint64_t{256} << 20U;

}  // namespace

DecodeLimit::DecodeLimit(const std::string& images, unsigned threads)
    : threads_(threads != 0 ? threads : cpu_count()) {
  const convert::Inputs inputs(images);
  convert::Inputs::Reader reader(inputs);
  const std::uint64_t count = std::min(inputs.size(), kFiles);
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < count && bytes < kBytes; ++i) {
    try {
      const std::span<const std::byte> file = reader.read(i * inputs.size() / count);
      if (image::detect_format(file) != image::Format::jpeg) continue;
      files_.emplace_back(file.begin(), file.end());
      bytes += file.size();
    } catch (const convert::UnreadableInput&) {  // the loader says so
    }
  }
}

double DecodeLimit::measure(double seconds) const {
  if (files_.empty()) return 0;
  std::atomic<std::uint64_t> next{0};
  std::atomic<std::uint64_t> decoded{0};
  const Stopwatch watch;
  run_threads(threads_, [&](unsigned) {
    PureDecoder decoder;
    while (watch.seconds() < seconds)
      if (decoder.decode(files_[next++ % files_.size()]) != 0) ++decoded;
  });
  return static_cast<double>(decoded) / watch.seconds();
}

}  // namespace shard::bench
