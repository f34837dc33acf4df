#include "remote/local_area.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>

#include "base/file_io.hpp"

namespace shard {
namespace {

constexpr std::uint64_t kStepBytes = std::uint64_t{1} << 20U;

std::atomic<std::uint64_t> forks_so_far{0};

// Counted from the first call on. posix_spawn() and vfork() do not count: what they start cannot read this process's files.
std::uint64_t forks() {
  static const int counted = ::pthread_atfork(
      nullptr, [] { ++forks_so_far; }, nullptr);
  if (counted != 0)
    throw_errno("cannot watch for fork() before files are made in", temporary_folder(), counted);
  return forks_so_far;
}

}  // namespace

LocalArea::LocalArea()
    : folder_(temporary_folder()), fd_(open_unnamed(folder_)), pid_(::getpid()), forks_(forks()) {}

bool LocalArea::of_this_process() const noexcept { return pid_ == ::getpid(); }

std::uint64_t LocalArea::take(std::uint64_t size_bytes) {
  const std::uint64_t room = (size_bytes + kStepBytes - 1) / kStepBytes * kStepBytes;
  const std::uint64_t offset = end_.fetch_add(room);
  // Written behind the end, a byte makes the file longer, and never shorter as ftruncate() of two threads may.
  constexpr std::byte kZero{0};
  pwrite_all(fd_.get(), {&kZero, 1}, offset + room - 1, folder_);
  return offset;
}

void LocalArea::release(std::uint64_t offset, std::uint64_t size_bytes) {
  if (!of_this_process() || forks() != forks_) return;
  if (::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                  static_cast<off_t>(size_bytes)) != 0)
    throw_errno("cannot give space back in", folder_, errno);
}

}  // namespace shard
