#include "convert/sources/open_archive.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "base/digest/checksum.hpp"
#include "base/files/file_io.hpp"
#include "base/text/quote.hpp"
#include "shard/remote.hpp"

namespace shard::convert {

OpenArchive::OpenArchive(const std::filesystem::path& path) : path_(path) {
  if (shard::is_remote(path)) {
    remote_ = std::make_unique<RemoteArchive>(path.native());
    size_ = remote_->size();
    return;
  }
  fd_.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!fd_ || ::fstat(fd_.get(), &info) != 0) {
    const int error = errno;
    throw Error(
        error == ENOENT ? ErrorCode::not_found : ErrorCode::io,
        fmt::format("cannot open the archive {}: {}{}", quoted(path), std::generic_category().message(error),
                    path.native().find('*') == std::string::npos
                        ? ""
                        : "; {000..146} in a name counts, and {a,b} lists words, but * stands for nothing"));
  }
  if (!S_ISREG(info.st_mode))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the archive {} is not a regular file", quoted(path)));
  size_ = static_cast<std::uint64_t>(info.st_size);
  // Headers are far apart: reading ahead would bring in the members.
  static_cast<void>(::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_RANDOM));
}

std::uint64_t file_stamp(const struct stat& info) noexcept {
  const std::array<std::uint64_t, 5> values{
      static_cast<std::uint64_t>(info.st_size), static_cast<std::uint64_t>(info.st_mtim.tv_sec),
      static_cast<std::uint64_t>(info.st_mtim.tv_nsec), static_cast<std::uint64_t>(info.st_ctim.tv_sec),
      static_cast<std::uint64_t>(info.st_ctim.tv_nsec)};
  return std::max<std::uint64_t>(xxh3(std::as_bytes(std::span(values))), 1);
}

std::uint64_t file_stamp(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) != 0 ? 0 : file_stamp(info);
}

std::uint64_t OpenArchive::stamp() const { return remote_ ? remote_->stamp() : file_stamp(fd_.get()); }

void OpenArchive::read_into(std::vector<std::byte>& out, std::uint64_t offset, std::uint64_t size_bytes,
                            const std::stop_token& stop) const {
  grow_by_steps(out, size_bytes,
                [&](std::uint64_t at, std::span<std::byte> step) { remote_->read(offset + at, step, stop); });
}

std::size_t OpenArchive::read(std::uint64_t offset, std::span<std::byte> out) const {
  if (remote_) {
    const auto there =
        static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), size_ - std::min(size_, offset)));
    if (there > 0) remote_->read(offset, out.first(there));
    return there;
  }
  return pread_some(fd_.get(), out, offset, path_);
}

}  // namespace shard::convert
