#include "remote/cache/transit_area.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include "base/files/file_io.hpp"
#include "base/system/stopwatch.hpp"
#include "base/text/quote.hpp"
#include "remote/cache/cache_lock.hpp"

namespace shard {
namespace fs = std::filesystem;

namespace {

constexpr std::chrono::milliseconds kTransitTurn{20};  // between looks at a lock
constexpr std::chrono::seconds kOthersTime{60};        // for another process to fetch a shard

}  // namespace

bool takes_no_files(int error) noexcept {
  return error == ENOSPC || error == EDQUOT || error == EROFS || error == EACCES || error == EPERM;
}

TransitArea::TransitArea(fs::path folder, bool shared)
    : folder_(std::move(folder)), shared_(shared), files_(std::make_unique<SpareFiles>()) {
  std::error_code error;
  fs::create_directory(folder_, error);
  folder_ = fs::absolute(folder_);
  if (!fs::is_directory(folder_, error))
    throw Error(ErrorCode::io, fmt::format("cannot open the transit folder {}: {}", quoted(folder_),
                                           error ? error.message() : "it is not a folder"));
  remove_abandoned();
}

// Again at the end: the locks of a process that was killed just before this one started may have been held a
// moment longer.
TransitArea::~TransitArea() { remove_abandoned(); }

void TransitArea::remove_abandoned() const noexcept try {
  std::error_code error;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error))
    if (const std::string name = it->path().filename().native();
        name.starts_with('.') && name.ends_with(kSuffix))
      remove_unlocked(it->path());
} catch (...) {  // no memory: the next process removes them
}

fs::path TransitArea::path_of(const std::string& name) const {
  return folder_ / ('.' + name + std::string(kSuffix));
}

std::optional<TransitArea::File> TransitArea::get(const std::string& name, std::uint64_t size_bytes,
                                                  const Fetch& fetch, const std::stop_token& stop) const {
  if (shared_)
    if (auto fd = get_shared(path_of(name), size_bytes, fetch, stop))
      return File{std::move(*fd), size_bytes, true};
  const std::array<fs::path, 2> folders{folder_, temporary_folder()};
  // If the files of others can be seen and none could be made, `folder_` is full.
  std::optional<UniqueFd> fd = files_->take(size_bytes, std::span(folders).subspan(shared_ ? 1 : 0));
  if (!fd) return std::nullopt;
  try {
    fetch(fd->get());
  } catch (...) {
    files_->give_back(std::move(*fd), size_bytes);
    throw;
  }
  return File{std::move(*fd), size_bytes, false};
}

// While it is filled, the file is a byte longer than the shard.
// So one that its process left unfinished is never taken for a shard.
std::optional<UniqueFd> TransitArea::get_shared(const fs::path& path, std::uint64_t size_bytes,
                                                const Fetch& fetch, const std::stop_token& stop) const {
  const Stopwatch waited;
  for (; waited.seconds() < std::chrono::duration<double>(kOthersTime).count();
       std::this_thread::sleep_for(kTransitTurn)) {
    if (stop.stop_requested())
      throw Error(ErrorCode::cancelled, "stopped while another process fetches a shard");
    UniqueFd fd = open_plain(path, O_RDWR | O_CREAT);
    if (!fd && takes_no_files(errno)) return std::nullopt;
    if (!fd) throw_errno("cannot create", path, errno);
    if (::flock(fd.get(), LOCK_SH | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK || errno == EINTR) continue;  // it is being filled
      return std::nullopt;                                   // no locks there: nothing is shared
    }
    if (!names_file(path, fd.get())) continue;  // it was removed meanwhile
    if (regular_file_size(fd.get(), path) == size_bytes) return fd;
    if (lock_alone(fd.get()) != LockState::taken || !names_file(path, fd.get())) continue;
    if (regular_file_size(fd.get(), path) == size_bytes) continue;
    try {
      truncate(fd.get(), 0, path);
      preallocate(fd.get(), size_bytes + 1, path);
    } catch (const Error&) {  // the disk is full
      ::unlink(path.c_str());
      return std::nullopt;
    }
    try {
      fetch(fd.get());
      truncate(fd.get(), size_bytes, path);
    } catch (...) {
      ::unlink(path.c_str());
      throw;
    }
    // Another process may have it for a moment, to see that there is nothing to do.
    while (::flock(fd.get(), LOCK_SH | LOCK_NB) != 0) {
      if ((errno != EWOULDBLOCK && errno != EINTR) ||
          waited.seconds() > std::chrono::duration<double>(kOthersTime).count())
        return std::nullopt;
      std::this_thread::sleep_for(kTransitTurn);
    }
    if (names_file(path, fd.get())) return fd;
  }
  return std::nullopt;  // that process may be stopped
}

void TransitArea::give_back(const std::string& name, File file) const noexcept {
  if (!file.shared) return files_->give_back(std::move(file.fd), file.size_bytes);
  file.fd.reset();
  remove_unlocked(path_of(name));
}

}  // namespace shard
