#include "commands/write/write_bench.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include <fmt/core.h>

#include "base/files/file_io.hpp"
#include "base/system/parallel.hpp"
#include "base/text/quote.hpp"
#include "harness/measure.hpp"
#include "harness/temp_folder.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kAlign = 4096;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
constexpr std::uint64_t kMaxBlock = 64 * kMiB;
constexpr std::uint64_t kMaxSize = std::uint64_t{1} << 44U;
constexpr std::uint64_t kLimitBytes = std::uint64_t{1} << 30U;
constexpr unsigned kLimitThreads = 8;

void require_multiple(const char* option, std::uint64_t value, std::uint64_t least, std::uint64_t most) {
  if (value < least || value > most || value % kAlign != 0)
    throw Error(ErrorCode::invalid_argument, fmt::format("{} {}: expected a multiple of {}, {} to {}", option,
                                                         value, kAlign, least, most));
}

void require_space(const WriteOptions& options) {
  std::error_code error;
  if (!fs::exists(options.folder, error))
    throw Error(ErrorCode::not_found, fmt::format("{}: no such folder", quoted(options.folder)));
  if (!fs::is_directory(options.folder, error))
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: not a folder", quoted(options.folder)));
  const std::uint64_t free = fs::space(options.folder, error).available;
  if (error) throw_errno("cannot read the free space of", options.folder, error.value());
  const std::uint64_t needed = write_space_bytes(options.sizes);
  if (free < needed)
    throw Error(ErrorCode::resource,
                fmt::format("{}: --size {} needs {} bytes of free space, {} are free: lower --size",
                            quoted(options.folder), options.sizes.size_bytes, needed, free));
}

// A file that is there already, written over past the page cache by several threads at once.
class DiskWriteLimit {
 public:
  DiskWriteLimit(const fs::path& folder, const WriteSizes& sizes, const std::atomic<bool>& cancel)
      : size_(std::min(sizes.size_bytes, kLimitBytes)), source_(std::min(size_, kMiB)), cancel_(cancel) {
    fs::create_directory(folder);
    const WriteSizes whole{size_, size_, std::min(size_, kMiB)};
    path_ = write_once(folder, WriteMethod::direct, false, whole, source_, cancel).files.at(0);
  }
  double measure() {
    const UniqueFd fd(::open(path_.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC));
    if (!fd) return 0;
    const std::span<const std::byte> block = source_.block(0);
    std::atomic<std::uint64_t> next{0};
    std::atomic<std::uint64_t> bytes{0};
    const Stopwatch watch;
    run_threads(kLimitThreads, [&](unsigned) {
      for (;;) {
        const std::uint64_t at = next.fetch_add(block.size());
        if (at + block.size() > size_ || cancel_) return;
        const ssize_t wrote = ::pwrite(fd.get(), block.data(), block.size(), static_cast<off_t>(at));
        if (wrote > 0) bytes += static_cast<std::uint64_t>(wrote);
      }
    });
    return ::fsync(fd.get()) == 0 ? static_cast<double>(bytes) / watch.seconds() : 0;
  }

 private:
  std::uint64_t size_;
  BlockSource source_;
  const std::atomic<bool>& cancel_;
  fs::path path_;
};

double memory_rate(BlockSource& source, const WriteSizes& sizes) {
  const std::uint64_t ring = std::max(sizes.block_bytes, 256 * kMiB / sizes.block_bytes * sizes.block_bytes);
  const std::unique_ptr<std::byte[]> target(new std::byte[ring]);
  double seconds = 0;
  for (int pass = 0; pass < 2; ++pass) {  // the first one touches the pages
    const Stopwatch watch;
    for (std::uint64_t at = 0; at < ring; at += sizes.block_bytes)
      std::memcpy(target.get() + at, source.block(at / sizes.block_bytes).data(), sizes.block_bytes);
    seconds = watch.seconds();
  }
  return static_cast<double>(ring) / seconds;
}

}  // namespace

std::uint64_t write_space_bytes(const WriteSizes& sizes) {
  return sizes.size_bytes + std::min(sizes.size_bytes, kLimitBytes) + sizes.size_bytes / 32 + 16 * kMiB;
}

WriteResult bench_write(const WriteOptions& options, const std::atomic<bool>& cancel,
                        const std::function<void(const WriteResult&)>& done) {
  const WriteSizes& sizes = options.sizes;
  require_multiple("--block", sizes.block_bytes, kAlign, kMaxBlock);
  require_multiple("--shard-bytes", sizes.shard_bytes, kAlign, kMaxSize);
  require_multiple("--size", sizes.size_bytes, kAlign, kMaxSize);
  if (sizes.block_bytes > sizes.size_bytes)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--block {}: expected at most --size, {}", sizes.block_bytes, sizes.size_bytes));
  require_space(options);

  WriteResult result;
  for (const WriteMethod method : {WriteMethod::buffered, WriteMethod::direct, WriteMethod::mapped})
    for (const bool preallocated : {false, true}) result.cases.push_back({method, preallocated, {}, {}, 0});
  const TempFolder scratch(options.folder);
  BlockSource source(sizes.block_bytes);
  std::unique_ptr<DiskWriteLimit> disk;
  try {
    disk = std::make_unique<DiskWriteLimit>(scratch.path() / "limit", sizes, cancel);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
  }
  for (unsigned k = 0; k < options.repeat; ++k) {
    if (disk) result.disk_bytes_per_second.push_back(disk->measure());
    result.memory_bytes_per_second.push_back(memory_rate(source, sizes));
    for (WriteCase& one : result.cases) {
      if (!one.problem.empty()) continue;
      const fs::path folder = scratch.path() / "run";
      fs::create_directory(folder);
      try {
        const WriteRun run = write_once(folder, one.method, one.preallocated, sizes, source, cancel);
        if (k == 0) one.checked_blocks = check_written(run.files, sizes, source);
        one.samples.push_back(run.sample);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::unsupported) throw;
        one.problem = error.what();
        one.samples.clear();
      }
      fs::remove_all(folder);
      done(result);
    }
  }
  return result;
}

}  // namespace shard::bench
