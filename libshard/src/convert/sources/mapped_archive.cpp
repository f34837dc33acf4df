#include "convert/sources/mapped_archive.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <system_error>

#include "base/text/quote.hpp"
#include "base/unique_handle.hpp"
#include "convert/sources/open_archive.hpp"
#include "shard/error.hpp"

namespace shard::convert {

namespace {

[[noreturn]] void fail(const char* what, const Archive& archive) {
  const int error = errno;
  throw Error(ErrorCode::io, fmt::format("cannot {} {}: {}", what, quoted(archive.path),
                                         std::generic_category().message(error)));
}

void check(const Archive& archive, const struct stat& info) {
  if (static_cast<std::uint64_t>(info.st_size) != archive.size_bytes || file_stamp(info) != archive.stamp)
    throw_changed(archive, static_cast<std::uint64_t>(info.st_size));
}

}  // namespace

void throw_changed(const Archive& archive, std::uint64_t size_bytes) {
  constexpr const char* kAdvice =
      "archives must not change while they are converted; run the same command again";
  if (size_bytes != archive.size_bytes)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} has {} bytes, but had {} when this run started: {}", quoted(archive.path),
                            size_bytes, archive.size_bytes, kAdvice));
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} {}: {}", quoted(archive.path), kOtherStamp, kAdvice));
}

std::span<const std::byte> MappedArchive::mapping() const {
  const MappedFile* there = mapped_.load(std::memory_order_acquire);
  if (there != nullptr) return there->bytes();
  const UniqueFd fd(::open(archive_.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) fail("open", archive_);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) fail("read", archive_);
  check(archive_, info);
  auto fresh = std::make_unique<const MappedFile>(fd.get(), archive_.size_bytes, archive_.path);
  // Several threads may map it, and the first to store it wins: a lock could be held in a fork.
  if (mapped_.compare_exchange_strong(there, fresh.get(), std::memory_order_acq_rel)) there = fresh.release();
  return there->bytes();
}

void MappedArchive::check_unchanged() const {
  struct stat info {};
  if (::stat(archive_.path.c_str(), &info) != 0) fail("read", archive_);
  check(archive_, info);
}

}  // namespace shard::convert
