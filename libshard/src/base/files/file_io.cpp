#include "base/files/file_io.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <limits>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "base/files/file.hpp"
#include "base/text/quote.hpp"
#include "shard/error.hpp"

namespace shard {
namespace {

constexpr std::size_t kMaxTransferBytes = std::size_t{1} << 30;  // Linux moves at most 2 GiB - 4 KiB at once

off_t to_off(std::uint64_t value, const std::filesystem::path& path) {
  if (value > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max()))
    throw_errno("cannot address", path, EFBIG);
  return static_cast<off_t>(value);
}

}  // namespace

std::string errno_text(int error_number) { return std::generic_category().message(error_number); }

void FdTraits::close(type fd) noexcept { ::close(fd); }

std::string descriptor_advice(int error_number) {
  if (error_number == ENFILE)
    return " (the limit of the whole system: raise it with 'sysctl fs.file-max', or close other programs)";
  if (error_number != EMFILE) return {};
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  return fmt::format(" (this process may have {} and has them all open: raise 'ulimit -n')", limit.rlim_cur);
}

std::string missing_advice(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path there = fs::absolute(path, error).lexically_normal();
  if (error) return {};
  fs::path missing;
  while (there.has_relative_path() && !fs::exists(there, error)) {
    if (there.has_filename()) missing = there.filename();
    there = there.parent_path();
  }
  if (missing.empty()) return {};
  const std::string name =
      missing.string();  // of "s3:/bucket", and of "https:/host" that was s3:// or https://
  if (name == "s3:" || name == "http:" || name == "https:" || name == "hf:")
    return "; an address begins with s3://, hf:// or https://";
  return fmt::format("; {} {} has no {}: correct the path",
                     fs::is_directory(there, error) ? "folder" : "file", quoted(there), quoted(missing));
}

void throw_errno(std::string_view what, const std::filesystem::path& path, int error_number) {
  const bool too_many = error_number == EMFILE || error_number == ENFILE;
  const ErrorCode code = error_number == ENOENT ? ErrorCode::not_found
                         : too_many             ? ErrorCode::resource
                                                : ErrorCode::io;
  const bool full = error_number == ENOSPC || error_number == EDQUOT;
  throw Error(code, fmt::format("{} {}: {}{}{}", what, quoted(path), errno_text(error_number),
                                descriptor_advice(error_number),
                                full                     ? "; free space or use another disk"
                                : error_number == ENOENT ? missing_advice(path)
                                                         : ""));
}

UniqueFd open_read(const std::filesystem::path& path) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(),
                O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);  // a pipe: refused, not waited for
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) throw_errno("cannot open", path, errno);
  return UniqueFd(fd);
}

UniqueFd open_plain(const std::filesystem::path& path, int flags) noexcept {
  UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0644));
  struct stat status {};
  if (!fd || (::fstat(fd.get(), &status) == 0 && S_ISREG(status.st_mode))) return fd;
  errno = 0;
  return {};
}

bool names_file(const std::filesystem::path& path, int fd) noexcept {
  struct stat by_name {};
  struct stat by_fd {};
  return ::lstat(path.c_str(), &by_name) == 0 && ::fstat(fd, &by_fd) == 0 && by_name.st_dev == by_fd.st_dev &&
         by_name.st_ino == by_fd.st_ino;
}

UniqueFd open_unnamed(const std::filesystem::path& folder) {
  UniqueFd fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd) return fd;
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
    throw_errno("cannot make a temporary file in", folder, errno);
  std::string name = (folder / ".shard-XXXXXX").native();
  fd.reset(::mkostemp(name.data(), O_CLOEXEC));
  if (!fd) throw_errno("cannot make a temporary file in", folder, errno);
  ::unlink(name.c_str());
  return fd;
}

std::filesystem::path temporary_folder() {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  return error ? std::filesystem::path("/tmp") : folder;
}

std::uint64_t regular_file_size(int fd, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw_errno("cannot read the size of", path, errno);
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::io, fmt::format("{} is not a regular file", quoted(path)));
  }
  return static_cast<std::uint64_t>(status.st_size);
}

std::size_t pread_some(int fd, std::span<std::byte> out, std::uint64_t offset,
                       const std::filesystem::path& path) {
  std::size_t filled = 0;
  while (filled < out.size()) {
    const ssize_t count = ::pread(fd, out.data() + filled, std::min(out.size() - filled, kMaxTransferBytes),
                                  to_off(offset + filled, path));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_errno("cannot read", path, errno);
    if (count == 0) break;
    filled += static_cast<std::size_t>(count);
  }
  return filled;
}

void pread_all(int fd, std::span<std::byte> out, std::uint64_t offset, const std::filesystem::path& path) {
  const std::size_t filled = pread_some(fd, out, offset, path);
  if (filled == out.size()) return;
  throw Error(ErrorCode::io,
              fmt::format("cannot read {}: it ends at byte {}, {} bytes early (was it truncated?)",
                          quoted(path), offset + filled, out.size() - filled));
}

void pwrite_all(int fd, std::span<const std::byte> bytes, std::uint64_t offset,
                const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t count =
        ::pwrite(fd, bytes.data(), std::min(bytes.size(), kMaxTransferBytes), to_off(offset, path));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw_errno("cannot write", path, count < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

void preallocate(int fd, std::uint64_t size_bytes, const std::filesystem::path& path) {
  int status = 0;
  do {
    // fallocate, not posix_fallocate: where the file system cannot, the latter writes every block.
    status = ::fallocate(fd, 0, 0, to_off(size_bytes, path));
  } while (status != 0 && errno == EINTR);
  if (status == 0) return;
  const int error_number = errno;
  if (error_number == ENOSPC || error_number == EDQUOT) {
    struct statvfs space {};
    const bool known = ::fstatvfs(fd, &space) == 0;
    const std::uint64_t free_bytes = known ? std::uint64_t{space.f_bavail} * space.f_frsize : 0;
    throw Error(ErrorCode::io, fmt::format("cannot reserve {} bytes for {}: {} ({} bytes are free)",
                                           size_bytes, quoted(path), errno_text(error_number), free_bytes));
  }
  if (error_number != EOPNOTSUPP && error_number != ENOSYS)
    throw_errno("cannot reserve space for", path, error_number);
  truncate(fd, size_bytes, path);
}

void truncate(int fd, std::uint64_t size_bytes, const std::filesystem::path& path) {
  int status = 0;
  do {
    status = ::ftruncate(fd, to_off(size_bytes, path));
  } while (status != 0 && errno == EINTR);
  if (status != 0) throw_errno("cannot set the size of", path, errno);
}

void sync_file(int fd, const std::filesystem::path& path) {
  // Not retried after any error: the kernel may have dropped the pages that failed.
  if (::fsync(fd) != 0) throw_errno("cannot flush to disk (fsync)", path, errno);
}

void sync_folder(const std::filesystem::path& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) throw_errno("cannot open folder", folder, errno);
  // Some network file systems cannot flush a folder and say so with EINVAL.
  if (::fsync(fd.get()) != 0 && errno != EINVAL)
    throw_errno("cannot flush to disk (fsync) folder", folder, errno);
}

void rename_file(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) throw_errno("cannot rename a finished file to", to, errno);
}

bool rename_file_new(const std::filesystem::path& from, const std::filesystem::path& to) {
  constexpr const char* kWhat = "cannot rename a finished file to";
  const auto not_supported = [](int error) {
    return error == EINVAL || error == ENOSYS || error == EOPNOTSUPP || error == EPERM || error == EMLINK;
  };
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno == EEXIST) return false;
  if (!not_supported(errno)) throw_errno(kWhat, to, errno);
  struct stat ours {};
  struct stat there {};
  if (::link(from.c_str(), to.c_str()) != 0) {
    const int error = errno;
    // A network file system may carry out a request twice, and answer the second time.
    const bool linked = error == EEXIST && ::lstat(from.c_str(), &ours) == 0 &&
                        ::lstat(to.c_str(), &there) == 0 && ours.st_dev == there.st_dev &&
                        ours.st_ino == there.st_ino;
    if (error == EEXIST && !linked) return false;
    if (!linked && !not_supported(error)) throw_errno(kWhat, to, error);
    if (!linked) {
      if (::lstat(to.c_str(), &there) == 0) return false;
      rename_file(from, to);
      return true;
    }
  }
  if (::unlink(from.c_str()) != 0 && errno != ENOENT)
    throw_errno("cannot remove the temporary file", from, errno);
  return true;
}

bool holds_same_bytes(int fd, const std::filesystem::path& fd_path, const std::filesystem::path& path) {
  const UniqueFd other(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW));
  if (!other) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) throw_errno("cannot open", path, errno);
    return false;  // not there, a link, or not readable: not the same
  }
  struct stat ours {};
  struct stat there {};
  if (::fstat(fd, &ours) != 0) throw_errno("cannot read the size of", fd_path, errno);
  if (::fstat(other.get(), &there) != 0) throw_errno("cannot read the size of", path, errno);
  if (!S_ISREG(there.st_mode) || ours.st_size != there.st_size) return false;
  constexpr std::uint64_t kStep = std::uint64_t{1} << 20;
  std::vector<std::byte> a(kStep);
  std::vector<std::byte> b(kStep);
  const auto size = static_cast<std::uint64_t>(ours.st_size);
  for (std::uint64_t at = 0; at < size; at += kStep) {
    const auto step = static_cast<std::size_t>(std::min(kStep, size - at));
    pread_all(fd, std::span(a).first(step), at, fd_path);
    pread_all(other.get(), std::span(b).first(step), at, path);
    if (!std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(step), b.begin())) return false;
  }
  return true;
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

std::vector<std::byte> read_file(const std::filesystem::path& path, std::uint64_t max_bytes) {
  std::vector<std::byte> bytes;
  read_file_into(path, max_bytes, bytes);
  return bytes;
}

void read_file_into(const std::filesystem::path& path, std::uint64_t max_bytes, std::vector<std::byte>& out) {
  const auto refuse = [&](std::uint64_t bytes) {
    throw Error(ErrorCode::resource,
                fmt::format("{} holds {} bytes or more: the limit is {}", quoted(path), bytes, max_bytes));
  };
  constexpr std::size_t kStep = 64 * 1024;
  const UniqueFd fd = open_read(path);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) throw_errno("cannot read the size of", path, errno);
  const std::uint64_t expected = S_ISREG(status.st_mode) ? static_cast<std::uint64_t>(status.st_size) : 0;
  if (expected > max_bytes) refuse(expected);
  // A file of known size is read at once (and one byte more is asked for, to see its end); others grow by
  // steps.
  out.resize(static_cast<std::size_t>(expected) + 1);
  std::size_t used = 0;
  for (;;) {
    if (used == out.size()) out.resize(used + std::max(kStep, used));
    const ssize_t count = ::read(fd.get(), out.data() + used, std::min(out.size() - used, kMaxTransferBytes));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_errno("cannot read", path, errno);
    if (count == 0) break;
    used += static_cast<std::size_t>(count);
    if (used > max_bytes) refuse(used);
  }
  out.resize(used);
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    names.push_back(at->path().filename().native());
  if (error) throw Error(ErrorCode::io, fmt::format("cannot list {}: {}", quoted(folder), error.message()));
  return names;
}

bool is_present(const std::filesystem::path& path) noexcept {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::symlink_status(path, error));
}

LockState lock_alone(int fd) noexcept {
  int status = 0;
  do {
    status = ::flock(fd, LOCK_EX | LOCK_NB);
  } while (status != 0 && errno == EINTR);
  if (status == 0) return LockState::taken;
  return errno == EWOULDBLOCK ? LockState::busy : LockState::not_supported;
}

}  // namespace shard
