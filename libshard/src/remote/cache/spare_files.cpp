#include "remote/cache/spare_files.hpp"

#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/files/file_io.hpp"

namespace shard {
namespace fs = std::filesystem;

namespace {

// Nothing: the disk is full, or the folder takes no files.
std::optional<UniqueFd> unnamed_with_room(const fs::path& folder, std::uint64_t size_bytes) {
  try {
    UniqueFd fd = open_unnamed(folder);
    preallocate(fd.get(), size_bytes, folder);
    return fd;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::io) throw;
    return std::nullopt;
  }
}

}  // namespace

SpareFiles::SpareFiles() : pid_(::getpid()) {}

// The last one that was given back, whose pages are the likeliest to be in the processor's caches.
std::optional<UniqueFd> SpareFiles::spare_of(std::uint64_t size_bytes) {
  while (!spare_.empty()) {
    File file = std::move(spare_.back());
    spare_.pop_back();
    spare_bytes_ -= file.size_bytes;
    try {
      if (file.size_bytes > size_bytes) truncate(file.fd.get(), size_bytes, "a file in transit");
      if (file.size_bytes < size_bytes) preallocate(file.fd.get(), size_bytes, "a file in transit");
      return std::move(file.fd);
    } catch (const Error&) {  // the disk is full: this file's room is free now
    }
  }
  return std::nullopt;
}

void SpareFiles::trim() {
  while (!spare_.empty() && used_bytes_ + spare_bytes_ > most_bytes_) {
    spare_bytes_ -= spare_.front().size_bytes;
    spare_.erase(spare_.begin());
  }
}

std::optional<UniqueFd> SpareFiles::take(std::uint64_t size_bytes, std::span<const fs::path> folders) {
  const std::lock_guard lock(mutex_);
  if (pid_ != ::getpid()) {  // those of the parent
    spare_.clear();
    used_bytes_ = spare_bytes_ = most_bytes_ = 0;
    pid_ = ::getpid();
  }
  std::optional<UniqueFd> fd = spare_of(size_bytes);
  for (auto folder = folders.begin(); !fd && folder != folders.end(); ++folder)
    fd = unnamed_with_room(*folder, size_bytes);
  if (!fd) return std::nullopt;
  used_bytes_ += size_bytes;
  most_bytes_ = std::max(most_bytes_, used_bytes_);
  trim();
  return fd;
}

void SpareFiles::give_back(UniqueFd fd, std::uint64_t size_bytes) noexcept {
  const std::lock_guard lock(mutex_);
  if (pid_ != ::getpid()) return;  // the parent still uses it
  used_bytes_ -= size_bytes;
  try {
    spare_.push_back({std::move(fd), size_bytes});
    spare_bytes_ += size_bytes;
  } catch (const std::bad_alloc&) {  // one less to use again
  }
}

}  // namespace shard
