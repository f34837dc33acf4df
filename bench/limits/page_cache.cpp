#include "limits/page_cache.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>
#include <system_error>

#include <fmt/core.h>

#include "base/unique_handle.hpp"
#include "harness/measure.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const char* what, const fs::path& path) {
  throw Error(ErrorCode::io,
              fmt::format("{}: cannot {}: {}", path.string(), what, std::generic_category().message(errno)));
}

UniqueFd open_file(const fs::path& path, int flags = 0) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags));
  return fd;
}

std::uint64_t size_of(const UniqueFd& fd, const fs::path& path) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) fail("look at it", path);
  return static_cast<std::uint64_t>(info.st_size);
}

void add_state(const UniqueFd& fd, const fs::path& path, CacheState& state) {
  const std::uint64_t size = size_of(fd, path);
  if (size == 0) return;
  void* const mapped = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (mapped == MAP_FAILED) fail("map it", path);
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((size + page - 1) / page);
  const int result = ::mincore(mapped, size, pages.data());
  const int error = errno;
  ::munmap(mapped, size);
  errno = error;
  if (result != 0) fail("ask for its pages", path);
  state.pages += pages.size();
  for (const unsigned char one : pages) state.resident += one & 1U;
}

}  // namespace

CacheState cache_state(std::span<const fs::path> files) {
  CacheState state;
  for (const fs::path& path : files) {
    const UniqueFd fd = open_file(path);
    if (!fd) fail("open it", path);
    add_state(fd, path, state);
  }
  return state;
}

CacheState drop_cache(std::span<const fs::path> files) {
  CacheState state;
  for (const fs::path& path : files) {
    const UniqueFd fd = open_file(path);
    if (!fd) fail("open it", path);
    ::fdatasync(fd.get());  // dirty pages stay; a read-only filesystem has none
    ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
    add_state(fd, path, state);
  }
  return state;
}

void warm_cache(std::span<const fs::path> files) {
  std::vector<std::byte> buffer(std::size_t{1} << 20U);
  for (const fs::path& path : files) {
    const UniqueFd fd = open_file(path);
    if (!fd) fail("open it", path);
    for (;;) {
      const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail("read it", path);
      if (got == 0) break;
    }
  }
}

bool is_memory(const fs::path& path) {
  struct statfs info {};
  if (::statfs(path.c_str(), &info) != 0) return false;
  return info.f_type == TMPFS_MAGIC || info.f_type == RAMFS_MAGIC;
}

double raw_rate(std::span<const fs::path> files, double seconds) {
  constexpr std::uint64_t kBlock = std::uint64_t{1} << 20U;
  constexpr std::uint64_t kPlaces = 192;  // of memory, in turn: one that stays in the cache flatters
  struct Part {
    std::size_t file;
    std::uint64_t offset;
  };
  std::vector<Part> parts;
  std::vector<UniqueFd> open;
  for (const fs::path& path : files) {
    UniqueFd fd = open_file(path, O_DIRECT);
    if (!fd) return 0;
    for (std::uint64_t at = 0; at + kBlock <= size_of(fd, path); at += kBlock)
      parts.push_back({open.size(), at});
    open.push_back(std::move(fd));
  }
  if (parts.empty()) return 0;
  const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(4096, kPlaces * kBlock),
                                                           &std::free);
  double best = 0;
  std::atomic<std::uint64_t> next{0};  // goes on through the files, not the same again
  for (const unsigned threads : {4U, 16U, 64U}) {
    std::atomic<std::uint64_t> bytes{0};
    const Stopwatch watch;
    on_threads(threads, [&](unsigned) {
      while (watch.seconds() < seconds) {
        const std::uint64_t i = next++;
        const Part& part = parts[i % parts.size()];
        std::byte* const place = static_cast<std::byte*>(memory.get()) + i % kPlaces * kBlock;
        const ssize_t got = ::pread(open[part.file].get(), place, kBlock, static_cast<off_t>(part.offset));
        if (got <= 0) return;
        bytes += static_cast<std::uint64_t>(got);
      }
    });
    best = std::max(best, static_cast<double>(bytes) / watch.seconds());
  }
  return best;
}

}  // namespace shard::bench
