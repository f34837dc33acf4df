#include "remote/cache/cache_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include "base/files/file_io.hpp"
#include "base/system/stopwatch.hpp"
#include "base/text/quote.hpp"

namespace shard {
namespace {

constexpr std::chrono::milliseconds kFirstTurn{1};
constexpr std::chrono::milliseconds kLastTurn{20};

// For as long as others may have it: true when `attempt` is.
template <typename Attempt>
bool wait_until(Attempt attempt, std::chrono::duration<double> most, const std::stop_token& stop) {
  const Stopwatch waited;
  for (auto turn = kFirstTurn; !attempt(); turn = std::min(2 * turn, kLastTurn)) {
    if (stop.stop_requested()) throw Error(ErrorCode::cancelled, "stopped while a cache folder was locked");
    if (waited.seconds() >= most.count()) return false;
    std::this_thread::sleep_for(turn);
  }
  return true;
}

[[noreturn]] void throw_no_locks(const std::filesystem::path& folder, int error) {
  throw Error(ErrorCode::io,
              fmt::format("cannot lock the cache folder {}: {}; choose a folder on a local disk",
                          quoted(folder), std::generic_category().message(error)));
}

}  // namespace

void unlock(int fd) noexcept {
  if (fd >= 0) ::flock(fd, LOCK_UN);
}

void remove_unlocked(const std::filesystem::path& path) noexcept {
  UniqueFd fd = open_plain(path, O_RDWR);  // NFS locks only what can be written to
  if (!fd) fd = open_plain(path, O_RDONLY);
  if (!fd) return;
  if (lock_alone(fd.get()) == LockState::taken && names_file(path, fd.get())) ::unlink(path.c_str());
  unlock(fd.get());
}

CacheLock::CacheLock(UniqueFd fd, std::filesystem::path file) noexcept
    : fd_(std::move(fd)), file_(std::move(file)) {}

CacheLock::~CacheLock() {
  if (!fd_) return;
  if (!file_.empty()) ::unlink(file_.c_str());
  unlock(fd_.get());
}

std::optional<CacheLock> CacheLock::take(const std::filesystem::path& folder,
                                         std::chrono::duration<double> most, const std::stop_token& stop) {
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) throw_errno("cannot open the cache folder", folder, errno);
  LockState state = LockState::busy;
  const auto settled = [&] { return (state = lock_alone(fd.get())) != LockState::busy; };
  if (!wait_until(settled, most, stop)) return std::nullopt;
  if (state == LockState::taken) return CacheLock(std::move(fd), {});

  // What is locked must be writable, and a folder never is.
  const std::filesystem::path file = folder / kFile;
  int refused = 0;
  const auto locked = [&] {
    fd = open_plain(file, O_RDWR | O_CREAT);
    if (!fd && errno != EACCES && errno != ENOENT) refused = errno == 0 ? EISDIR : errno;
    if (!fd) return refused != 0;  // another user has it: it is removed when the lock is given back
    state = lock_alone(fd.get());
    if (state == LockState::not_supported) refused = errno;
    if (refused != 0) ::unlink(file.c_str());
    // Whoever had it has removed it meanwhile: then it locks nobody else out.
    return refused != 0 || (state == LockState::taken && names_file(file, fd.get()));
  };
  if (!wait_until(locked, most, stop)) return std::nullopt;
  if (refused != 0) throw_no_locks(folder, refused);
  return CacheLock(std::move(fd), file);
}

}  // namespace shard
