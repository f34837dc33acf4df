#include "remote/cache/local_area.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <iterator>
#include <utility>

#include "base/files/file_io.hpp"

namespace shard {
namespace {

constexpr std::uint64_t kStepBytes = std::uint64_t{1} << 20U;

std::atomic<std::uint64_t> forks_so_far{0};

// Counted from the first call on. posix_spawn() and vfork() do not count:
// what they start cannot read this process's files.
std::uint64_t forks() {
  static const int counted = ::pthread_atfork(
      nullptr, [] { ++forks_so_far; }, nullptr);
  if (counted != 0)
    throw_errno("cannot watch for fork() before files are made in", temporary_folder(), counted);
  return forks_so_far;
}

constexpr std::uint64_t rounded(std::uint64_t size_bytes) {
  return (std::max<std::uint64_t>(size_bytes, 1) + kStepBytes - 1) / kStepBytes * kStepBytes;
}

}  // namespace

LocalArea::LocalArea()
    : folder_(temporary_folder()), fd_(open_unnamed(folder_)), pid_(::getpid()), forks_(forks()) {}

bool LocalArea::of_this_process() const noexcept { return pid_ == ::getpid(); }

std::uint64_t LocalArea::take(std::uint64_t size_bytes) {
  const std::uint64_t room = rounded(size_bytes);
  const std::lock_guard lock(mutex_);
  const auto fits = [&](const auto& place) { return place.second >= room; };
  if (const auto it = std::find_if(free_.begin(), free_.end(), fits); it != free_.end()) {
    const auto [offset, size] = *it;
    free_.erase(it);
    if (size > room) free_.emplace(offset + room, size - room);
    return offset;
  }
  truncate(fd_.get(), end_ + room, folder_);
  return std::exchange(end_, end_ + room);
}

void LocalArea::release(std::uint64_t offset, std::uint64_t size_bytes) {
  if (!of_this_process() || forks() != forks_) return;
  if (::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                  static_cast<off_t>(size_bytes)) != 0)
    throw_errno("cannot give space back in", folder_, errno);
  const std::lock_guard lock(mutex_);
  auto place = free_.emplace(offset, rounded(size_bytes)).first;
  if (const auto next = std::next(place);
      next != free_.end() && next->first == place->first + place->second) {
    place->second += next->second;
    free_.erase(next);
  }
  if (place == free_.begin()) return;
  if (const auto before = std::prev(place); before->first + before->second == place->first) {
    before->second += place->second;
    free_.erase(place);
  }
}

}  // namespace shard
