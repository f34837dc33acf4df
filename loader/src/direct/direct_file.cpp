#include "direct/direct_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#include "shard/error.hpp"

namespace shard {

namespace {

// Linux 6.1 and later: statx() tells what O_DIRECT asks for. Older headers have no names for it.
constexpr unsigned kStatxDioAlign = 0x2000;
constexpr std::size_t kDioMemoryAlignAt = 0x98;
constexpr std::size_t kDioOffsetAlignAt = 0x9c;

std::uint32_t alignment_of(int descriptor) {
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
  return known ? std::clamp(larger, 512U, 4096U) : 4096U;
}

}  // namespace

DirectFile::DirectFile(const ShardReader& shard) {
  const std::string link = fmt::format("/proc/self/fd/{}", shard.descriptor());
  descriptor_.reset(::open(link.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  if (!descriptor_) {
    const int error = errno;
    const ErrorCode code = error == EINVAL                      ? ErrorCode::unsupported
                           : error == EMFILE || error == ENFILE ? ErrorCode::resource
                                                                : ErrorCode::io;
    throw Error(code, fmt::format("{}: cannot be opened for direct reads (O_DIRECT): {}",
                                  shard.path().string(), std::generic_category().message(error)));
  }
  alignment_ = alignment_of(descriptor_.get());
}

}  // namespace shard
