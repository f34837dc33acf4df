#include "direct/direct_alignment.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <system_error>

#include "shard/error.hpp"

namespace shard {

namespace {

constexpr std::uint32_t kLeast = 512;
constexpr std::uint32_t kUsual = 4096;
constexpr std::uint32_t kMost = std::uint32_t{1} << 20U;

// Linux 6.1 and later: statx() states the alignment for O_DIRECT. Older headers have no names for this.
constexpr unsigned kStatxDioAlign = 0x2000;
constexpr std::size_t kDioMemoryAlignAt = 0x98;
constexpr std::size_t kDioOffsetAlignAt = 0x9c;

std::uint32_t stated_alignment(int descriptor) {
  alignas(8) unsigned char answer[256] = {};
  std::uint32_t mask = 0;
  std::uint32_t memory = 0;
  std::uint32_t offset = 0;
  if (::syscall(SYS_statx, descriptor, "", AT_EMPTY_PATH, kStatxDioAlign, answer) == 0) {
    std::memcpy(&mask, answer, sizeof mask);
    std::memcpy(&memory, answer + kDioMemoryAlignAt, sizeof memory);
    std::memcpy(&offset, answer + kDioOffsetAlignAt, sizeof offset);
  }
  const std::uint32_t larger = std::max(memory, offset);
  const bool known = (mask & kStatxDioAlign) != 0 && offset != 0 && std::has_single_bit(larger);
  return known ? std::clamp(larger, kLeast, kMost) : kUsual;
}

}  // namespace

std::uint32_t find_alignment(std::uint32_t stated, const ProbeRead& read) {
  for (std::uint32_t alignment = stated; alignment <= kMost; alignment *= 2) {
    const int error = read(alignment);
    if (error == 0) return alignment;
    if (error != EINVAL)
      throw Error(ErrorCode::unsupported, fmt::format("a direct read (O_DIRECT) of {} bytes failed: {}",
                                                      alignment, std::generic_category().message(error)));
  }
  throw Error(ErrorCode::unsupported,
              fmt::format("direct reads (O_DIRECT) aligned to {} to {} bytes are refused", stated, kMost));
}

std::uint32_t direct_alignment(int descriptor, std::uint64_t file_size_bytes) {
  return find_alignment(stated_alignment(descriptor), [&](std::uint32_t alignment) {
    struct Free {
      void operator()(std::byte* bytes) const noexcept { std::free(bytes); }
    };
    const std::unique_ptr<std::byte, Free> memory(
        static_cast<std::byte*>(std::aligned_alloc(std::size_t{2} * alignment, std::size_t{2} * alignment)));
    if (!memory) return ENOMEM;
    const std::uint64_t offset = file_size_bytes > alignment ? alignment : 0;
    ssize_t got = 0;
    do got = ::pread(descriptor, memory.get() + alignment, alignment, static_cast<off_t>(offset));
    while (got < 0 && errno == EINTR);
    return got < 0 ? errno : 0;
  });
}

}  // namespace shard
