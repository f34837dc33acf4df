#include "convert/sources/input_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

#include "base/text/quote.hpp"
#include "base/unique_handle.hpp"
#include "convert/sources/mapped_archive.hpp"
#include "convert/sources/open_archive.hpp"

namespace shard::convert {

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30U;
constexpr std::size_t kKeepBytes = std::size_t{8}
                                   << 20U;  // a larger buffer is freed when a small file follows

[[noreturn]] void fail_read(const char* what, const std::filesystem::path& path, int error) {
  const std::string text = std::generic_category().message(error);
  if (error == EMFILE || error == ENFILE)
    throw Error(ErrorCode::resource, fmt::format("cannot open {}: {} (raise 'ulimit -n' or use fewer `jobs`)",
                                                 quoted(path), text));
  if (error == ENOMEM)
    throw Error(ErrorCode::resource, fmt::format("cannot {} {}: {}", what, quoted(path), text));
  throw UnreadableInput(ErrorCode::io, fmt::format("cannot {}: {}", what, text));
}

// Returns how many bytes there were: fewer if the file was cut meanwhile, and the caller sees that.
std::size_t fill(int fd, std::uint64_t offset, std::span<std::byte> out, const std::filesystem::path& path) {
  std::size_t filled = 0;
  while (filled < out.size()) {
    const ssize_t got =
        ::pread(fd, out.data() + filled, out.size() - filled, static_cast<off_t>(offset + filled));
    if (got < 0) {
      if (errno == EINTR) continue;
      fail_read("read", path, errno);
    }
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  return filled;
}

}  // namespace

std::span<const std::byte> InputReader::read(const std::string& relative_path) {
  return read_file(relative_path, kMaxFileBytes);
}

UniqueFd InputReader::open_file(const std::filesystem::path& path, std::uint64_t& size) {
  // O_NONBLOCK: opening a pipe must not wait for its writer. O_NOATIME: the first read of each new file would
  // write its inode; only the owner of a file may ask for that.
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  int opened = -1;
  do opened = ::open(path.c_str(), kFlags | (may_leave_atime_ ? O_NOATIME : 0));
  while (opened < 0 && errno == EINTR);
  if (opened < 0 && errno == EPERM && may_leave_atime_) {
    may_leave_atime_ = false;
    return open_file(path, size);
  }
  UniqueFd fd(opened);
  if (!fd) fail_read("open", path, errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) fail_read("read", path, errno);
  if (!S_ISREG(info.st_mode)) throw UnreadableInput(ErrorCode::unsupported, "is not a regular file");
  size = static_cast<std::uint64_t>(info.st_size);
  check_input_size(size);
  return fd;
}

std::span<const std::byte> InputReader::read_file(const std::string& relative_path, std::size_t most) {
  const std::filesystem::path path = root_ / relative_path;
  std::uint64_t size = 0;
  const UniqueFd fd = open_file(path, size);
  size = std::min<std::uint64_t>(size, most);
  make_room(size);
  const std::size_t filled = fill(fd.get(), 0, std::span(buffer_).first(size), path);
  stamp_ = most == kMaxFileBytes ? file_stamp(fd.get()) : 0;  // not of headers, which are read again
  return {buffer_.data(), filled};
}

bool InputReader::read_to(const Input& input, std::span<std::byte> out) {
  const Archive* const archive = list_ != nullptr ? list_->archive_of(input) : nullptr;
  if (archive == nullptr) {
    const std::filesystem::path path = root_ / input.path;
    std::uint64_t size = 0;
    const UniqueFd fd = open_file(path, size);
    return size == out.size() && fill(fd.get(), 0, out, path) == size &&
           (input.stamp == 0 || file_stamp(fd.get()) == input.stamp);
  }
  if (input.size_bytes != out.size() || archive->header.size() > out.size()) return false;
  std::copy(archive->header.begin(), archive->header.end(), out.begin());
  const std::span<std::byte> rest = out.subspan(archive->header.size());
  const bool whole = fill(descriptor(*archive), input.offset, rest, archive->path) == rest.size();
  require_unchanged(*archive);
  return whole;
}

std::span<const std::byte> InputReader::read(const Input& input) { return read_front(input, kMaxFileBytes); }

std::span<const std::byte> InputReader::read_front(const Input& input, std::size_t most) {
  const Archive* const archive = list_ != nullptr ? list_->archive_of(input) : nullptr;
  stamp_ = 0;
  if (archive != nullptr) return read_member(*archive, input, most);
  if (list_ == nullptr || !list_->server) return read_file(input.path, most);
  check_input_size(input.size_bytes);
  list_->server->read(input.path, {input.size_bytes, input.stamp}, buffer_);
  return buffer_;
}

std::span<const std::byte> InputReader::read_member(const Archive& archive, const Input& input,
                                                    std::size_t most) {
  if (archive.on_server()) {
    check_input_size(input.size_bytes);
    archive.open->read_into(buffer_, input.offset, input.size_bytes);
    return buffer_;
  }
  check_input_size(input.size_bytes);
  const std::size_t size =
      std::min(static_cast<std::size_t>(input.size_bytes), std::max(most, archive.header.size()));
  make_room(size);
  std::copy(archive.header.begin(), archive.header.end(), buffer_.begin());
  const std::size_t header = archive.header.size();
  const std::span<std::byte> rest = std::span(buffer_).first(size).subspan(header);
  const std::size_t filled = fill(descriptor(archive), input.offset, rest, archive.path);
  require_unchanged(archive);
  return {buffer_.data(), header + filled};
}

// After a read: what was read then is of the archive that was listed. One that was unpacked for this run is
// nobody else's.
void InputReader::require_unchanged(const Archive& archive) {
  if (!archive.open) check(archive, descriptor(archive));
}

void InputReader::check(const Archive& archive, int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) fail_read("read", archive.path, errno);
  if (static_cast<std::uint64_t>(info.st_size) != archive.size_bytes || file_stamp(info) != archive.stamp)
    throw_changed(archive, static_cast<std::uint64_t>(info.st_size));
}

int InputReader::open(const Archive& archive) {
  for (const Open& there : open_)
    if (there.archive == &archive) return there.fd.get();
  const std::filesystem::path& path = archive.path;
  int opened = -1;
  do opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  while (opened < 0 && errno == EINTR);
  if (opened < 0) fail_read("open", path, errno);
  UniqueFd fd(opened);
  check(archive, opened);
  Open& place = open_[next_++ % kOpen];
  place.archive = &archive;
  place.fd = std::move(fd);
  return opened;
}

void check_input_size(std::uint64_t size) {
  if (size > kMaxFileBytes)
    throw UnreadableInput(ErrorCode::resource,
                          fmt::format("has {} bytes; images have at most {}", size, kMaxFileBytes));
}

void InputReader::make_room(std::size_t size) {
  check_input_size(size);
  if (buffer_.size() > kKeepBytes && size <= kKeepBytes) {
    buffer_.clear();
    buffer_.shrink_to_fit();
  }
  try {
    if (buffer_.size() < size) buffer_.resize(size);
  } catch (const std::bad_alloc&) {
    throw UnreadableInput(ErrorCode::resource, fmt::format("no memory for its {} bytes", size));
  }
}

}  // namespace shard::convert
