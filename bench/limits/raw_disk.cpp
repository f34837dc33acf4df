#include "limits/raw_disk.hpp"

#include <fcntl.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <system_error>

#include "base/system/stopwatch.hpp"
#include "base/unique_handle.hpp"
#include "shard/loader/direct_reads.hpp"

namespace shard::bench {
namespace {

constexpr std::uint64_t kDirectAlign = 4096;
constexpr std::uint64_t kMemoryBytes = std::uint64_t{192} << 20U;
constexpr std::uint64_t kPassBytes = std::uint64_t{2} << 30U;

std::uint64_t mixed(std::uint64_t x) {
  x = (x + 1) * 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  return x ^ (x >> 27U);
}

}  // namespace

RawDisk::RawDisk(std::span<const std::filesystem::path> files, std::uint64_t least_bytes) {
  for (const std::filesystem::path& path : files) {
    std::error_code error;
    const std::uint64_t size = std::filesystem::file_size(path, error);
    if (!error && size >= least_bytes) files_.emplace_back(path, size);
  }
}

double RawDisk::rate(const Pattern& pattern, double seconds) {
  std::vector<UniqueFd> descriptors;
  std::vector<std::uint64_t> ends{0};  // of file i: block ends[i + 1]
  for (const auto& [path, size] : files_) {
    descriptors.emplace_back(::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
    ends.push_back(ends.back() + size / pattern.block_bytes);
  }
  if (ends.back() == 0) return 0;
  const std::uint64_t rows = std::max<std::uint64_t>(2 * pattern.depth, kMemoryBytes / pattern.block_bytes);
  const std::unique_ptr<void, decltype(&std::free)> memory(
      std::aligned_alloc(kDirectAlign, rows * pattern.block_bytes), &std::free);
  std::memset(memory.get(), 0, rows * pattern.block_bytes);
  std::vector<ReadRequest> requests(rows);
  std::deque<ReadRequest*> idle;  // in turn: as in a ring
  for (std::uint64_t i = 0; i < rows; ++i) {
    requests[i].target = static_cast<std::byte*>(memory.get()) + i * pattern.block_bytes;
    requests[i].size_bytes = static_cast<std::uint32_t>(pattern.block_bytes);
    idle.push_back(&requests[i]);
  }
  const auto queue =
      pattern.uring ? make_uring_queue(std::bit_ceil(pattern.depth)) : make_thread_queue(pattern.depth);
  // Threads find the next request waiting.
  const std::size_t most = pattern.uring ? pattern.depth : std::size_t{2} * pattern.depth;
  std::uint64_t left =
      seconds > 0 ? ~std::uint64_t{0} : std::min(ends.back(), kPassBytes / pattern.block_bytes);
  std::uint64_t bytes = 0;
  std::size_t under_way = 0;
  const Stopwatch watch;
  const auto goes_on = [&] { return left > 0 && (seconds == 0 || watch.seconds() < seconds); };
  try {
    while (goes_on() || under_way > 0) {
      for (; under_way < most && goes_on(); --left, ++under_way) {
        const std::uint64_t block = (pattern.random ? mixed(at_) : at_) % ends.back();
        ++at_;
        const auto end = std::upper_bound(ends.begin(), ends.end(), block);
        ReadRequest& request = *idle.front();
        idle.pop_front();
        request.descriptor = descriptors[static_cast<std::size_t>(end - ends.begin()) - 1].get();
        request.offset = (block - *(end - 1)) * pattern.block_bytes;
        queue->start(request);
      }
      queue->flush();
      ReadRequest& done = queue->next_done();
      --under_way;
      if (done.result > 0) bytes += static_cast<std::uint64_t>(done.result);
      idle.push_back(&done);
    }
  } catch (...) {
    queue->drain();
    throw;
  }
  return static_cast<double>(bytes) / watch.seconds();
}

double raw_rate(std::span<const std::filesystem::path> files, double seconds) {
  constexpr std::uint64_t kBlock = std::uint64_t{1} << 20U;
  RawDisk disk(files, kBlock);
  double best = 0;
  for (const unsigned threads : {4U, 16U, 64U})
    best = std::max(best, disk.rate({kBlock, false, false, threads}, seconds));
  return best;
}

}  // namespace shard::bench
