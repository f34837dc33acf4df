#include "format/temp_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "format/bytes.hpp"
#include "shard/checksum.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"
#include "shard/shard_writer.hpp"

namespace shard {
namespace {

std::uint64_t random_number() {
  std::uint64_t value = 0;
  while (::getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) {
    if (errno != EINTR) throw Error(ErrorCode::io, "the system has no random numbers (getrandom)");
  }
  return value;
}

enum class Lock { taken, busy, not_supported };

Lock try_lock(int fd) noexcept {
  int status = 0;
  do {
    status = ::flock(fd, LOCK_EX | LOCK_NB);
  } while (status != 0 && errno == EINTR);
  if (status == 0) return Lock::taken;
  return errno == EWOULDBLOCK ? Lock::busy : Lock::not_supported;
}

// Whether `path` names the file that `fd` has open.
bool names_file(const std::filesystem::path& path, int fd) noexcept {
  struct stat by_name {};
  struct stat by_fd {};
  return ::lstat(path.c_str(), &by_name) == 0 && ::fstat(fd, &by_fd) == 0 && by_name.st_dev == by_fd.st_dev &&
         by_name.st_ino == by_fd.st_ino;
}

bool all_in(std::string_view text, std::string_view set) noexcept {
  return !text.empty() && text.find_first_not_of(set) == std::string_view::npos;
}

}  // namespace

TempFile::TempFile(std::filesystem::path target) : target_(std::move(target)) {
  constexpr int kAttempts = 100;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    path_ = folder_of(target_) /
            fmt::format(".{}.{}.{}.part", target_.filename().native(), ::getpid(), to_hex(random_number()));
    UniqueFd fd(::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (!fd) {
      if (errno == EEXIST || errno == EINTR) continue;
      throw_errno("cannot create a file for", target_, errno);
    }
    // Between creation and lock, someone who cleans up may take the lock and remove the file: then another
    // name.
    const Lock lock = try_lock(fd.get());
    if (lock == Lock::busy || !names_file(path_, fd.get())) continue;
    fd_ = std::move(fd);
    return;
  }
  throw Error(ErrorCode::io,
              fmt::format("cannot create a file for \"{}\": {} temporary files were taken away",
                          target_.native(), kAttempts));
}

TempFile::~TempFile() { discard(); }

void TempFile::discard() noexcept {
  if (fd_) ::unlink(path_.c_str());
  fd_.reset();
}

void TempFile::publish() {
  sync_file(fd_.get(), target_);
  rename_file(path_, target_);
  fd_.reset();
  sync_folder(folder_of(target_));
}

bool is_temporary_name(std::string_view name) noexcept {
  constexpr std::string_view kSuffix = ".part";
  if (!name.starts_with('.') || !name.ends_with(kSuffix)) return false;
  name.remove_prefix(1);
  name.remove_suffix(kSuffix.size());
  const auto random_at = name.rfind('.');
  if (random_at == std::string_view::npos || !from_hex(name.substr(random_at + 1))) return false;
  name = name.substr(0, random_at);
  const auto pid_at = name.rfind('.');
  return pid_at != std::string_view::npos && pid_at > 0 && all_in(name.substr(pid_at + 1), "0123456789");
}

std::uint64_t remove_stale_temporaries(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  std::uint64_t removed = 0;
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::filesystem::path& path = entries->path();
    if (!is_temporary_name(path.filename().native())) continue;
    const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd) {
      if (errno == ENOENT) continue;  // its writer has just finished
      throw_errno("cannot open the temporary file", path, errno);
    }
    if (try_lock(fd.get()) != Lock::taken || !names_file(path, fd.get())) continue;
    if (::unlink(path.c_str()) != 0 && errno != ENOENT)
      throw_errno("cannot remove the temporary file", path, errno);
    ++removed;
  }
  if (error) throw_errno("cannot list folder", folder, error.value());
  return removed;
}

void publish_file(const std::filesystem::path& path, std::string_view content) {
  TempFile file(path);
  pwrite_all(file.fd(), as_byte_span(content), 0, path);
  file.publish();
}

}  // namespace shard
