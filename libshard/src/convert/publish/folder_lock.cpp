#include "convert/publish/folder_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <optional>

#include "base/digest/checksum.hpp"
#include "base/files/file_io.hpp"
#include "base/text/quote.hpp"
#include "shard/error.hpp"

namespace shard::convert {

namespace {

namespace fs = std::filesystem;

// Whether the path, with its links followed, is that of the open file.
bool leads_to(const fs::path& path, int fd) noexcept {
  struct stat by_name {};
  struct stat by_fd {};
  return ::stat(path.c_str(), &by_name) == 0 && ::fstat(fd, &by_fd) == 0 && by_name.st_dev == by_fd.st_dev &&
         by_name.st_ino == by_fd.st_ino;
}

// Reads lines like "3: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF": process, device (hexadecimal) and
// inode. Some file systems show another device there than stat() does. Then a line with the same inode is
// taken.
std::int64_t flock_holder(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return 0;
  std::int64_t by_inode = 0;
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    long long pid = 0;
    unsigned major = 0;
    unsigned minor = 0;
    std::uint64_t inode = 0;
    if (std::sscanf(line.c_str(), "%*d: FLOCK %*s %*s %lld %x:%x:%" SCNu64, &pid, &major, &minor, &inode) !=
        4)
      continue;
    if (inode != status.st_ino || pid <= 0) continue;
    if (makedev(major, minor) == status.st_dev) return pid;
    by_inode = pid;
  }
  return by_inode;
}

// 2^40 ranges of at most 2^23 bytes: a process id has at most 22 bits.
constexpr unsigned kPlaceBits = 23;

std::uint64_t place_of(std::uint32_t rank, std::uint32_t world) {
  constexpr std::uint32_t kSmall = std::uint32_t{1} << 20U;
  const std::uint64_t place =
      world < kSmall ? std::uint64_t{rank} << 20U | world : xxh3(fmt::format("{} of {}", rank, world));
  return (place & ((std::uint64_t{1} << 40U) - 1)) << kPlaceBits;
}

// World size 0 stands for shards.
std::uint64_t place_of_shard(std::uint64_t shard) {
  constexpr std::uint64_t kSmall = std::uint64_t{1} << 20U;
  return shard < kSmall
             ? place_of(static_cast<std::uint32_t>(shard), 0)
             : (xxh3(fmt::format("shard {}", shard)) & ((std::uint64_t{1} << 40U) - 1)) << kPlaceBits;
}

struct flock range_at(std::uint64_t place) {
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(place);
  range.l_len = 1 + ::getpid();
  return range;
}

// Nothing if it was opened.
std::optional<LockResult> open_to_lock(const fs::path& file, UniqueFd& fd) {
  fd.reset(::open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK));
  if (fd) return std::nullopt;
  if (errno == ENOENT) return LockResult::gone;
  // The file belongs to another user and may only be read, so it cannot be locked.
  if (errno == EACCES || errno == EPERM || errno == EROFS) return LockResult::unsupported;
  throw_errno("cannot open", file, errno);
}

LockResult lock_place(int fd, std::uint64_t place, std::int64_t* holder) {
  struct flock range = range_at(place);
  int status = 0;
  do {
    status = ::fcntl(fd, F_OFD_SETLK, &range);
  } while (status != 0 && errno == EINTR);
  if (status == 0) return LockResult::taken;
  if (errno != EAGAIN && errno != EACCES) return LockResult::unsupported;
  struct flock other = range_at(place);
  if (holder != nullptr && ::fcntl(fd, F_OFD_GETLK, &other) == 0 && other.l_type != F_UNLCK &&
      other.l_len > 1)
    *holder = other.l_len - 1;
  return LockResult::busy;
}

}  // namespace

FolderLock::~FolderLock() { unlock(); }

void FolderLock::unlock() noexcept {
  if (!held()) return;
  ::flock(fd_.get(), LOCK_UN);
  fd_.reset();
  held_ = false;
}

LockResult FolderLock::try_lock(const fs::path& folder, bool alone) {
  if (held_) return LockResult::taken;
  for (;;) {
    fd_.reset(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd_) throw_errno("cannot open folder", folder, errno);
    int status = 0;
    do {
      status = ::flock(fd_.get(), (alone ? LOCK_EX : LOCK_SH) | LOCK_NB);
    } while (status != 0 && errno == EINTR);
    if (status != 0 && errno == EWOULDBLOCK) {
      holder_ = flock_holder(fd_.get());
      fd_.reset();
      return LockResult::busy;
    }
    if (status != 0) return LockResult::unsupported;
    if (leads_to(folder, fd_.get())) break;
    // The folder was replaced by another one between open and lock: try again.
    ::flock(fd_.get(), LOCK_UN);
  }
  held_ = true;
  return LockResult::taken;
}

LockResult RankLock::try_lock(const fs::path& plan_file, std::uint32_t rank, std::uint32_t world) {
  if (const auto failed = open_to_lock(plan_file, fd_)) return *failed;
  const LockResult result = lock_place(fd_.get(), place_of(rank, world), &holder_);
  if (result == LockResult::busy) fd_.reset();
  if (result != LockResult::taken || leads_to(plan_file, fd_.get())) return result;
  fd_.reset();
  return LockResult::gone;
}

ShardLocks::~ShardLocks() {
  if (!fd_) return;
  struct flock all {};  // a fork may have copied the descriptor
  all.l_type = F_UNLCK;
  all.l_whence = SEEK_SET;
  ::fcntl(fd_.get(), F_OFD_SETLK, &all);
}

LockResult ShardLocks::try_lock(std::uint64_t shard) {
  if (!fd_) {
    if (const auto failed = open_to_lock(file_, fd_)) return *failed;
  }
  const LockResult result = lock_place(fd_.get(), place_of_shard(shard), nullptr);
  if (result != LockResult::taken || leads_to(file_, fd_.get())) return result;
  fd_.reset();
  return LockResult::gone;
}

void ShardLocks::unlock(std::uint64_t shard) noexcept {
  if (!fd_) return;
  struct flock range = range_at(place_of_shard(shard));
  range.l_type = F_UNLCK;
  ::fcntl(fd_.get(), F_OFD_SETLK, &range);
}

std::string process_text(std::int64_t pid) {
  return pid > 0 ? fmt::format("process {}", pid) : std::string("another process");
}

}  // namespace shard::convert
