#include "convert/input_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "shard/unique_handle.hpp"

namespace shard::convert {

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30U;
constexpr std::size_t kKeepBytes = std::size_t{8} << 20U;  // a larger buffer is given back after use

struct FdTraits {
  using type = int;
  static type invalid() noexcept { return -1; }
  static void close(type fd) noexcept { ::close(fd); }
};

[[noreturn]] void fail(const char* what, int error) {
  const std::string text = std::generic_category().message(error);
  if (error == EMFILE || error == ENFILE)
    throw Error(ErrorCode::resource,
                fmt::format("cannot open an image: {} (raise 'ulimit -n' or use fewer --jobs)", text));
  if (error == ENOMEM) throw Error(ErrorCode::resource, fmt::format("cannot {} an image: {}", what, text));
  throw UnreadableInput(ErrorCode::io, fmt::format("cannot {}: {}", what, text));
}

}  // namespace

std::span<const std::byte> InputReader::read(const std::string& relative_path) {
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  UniqueHandle<FdTraits> fd(::open((root_ / relative_path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) fail("open", errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) fail("read", errno);
  if (!S_ISREG(info.st_mode)) throw UnreadableInput(ErrorCode::unsupported, "is not a regular file");
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size > kMaxFileBytes)
    throw UnreadableInput(ErrorCode::resource,
                          fmt::format("has {} bytes; images have at most {}", size, kMaxFileBytes));
  if (buffer_.size() > kKeepBytes && size <= kKeepBytes) {
    buffer_.clear();
    buffer_.shrink_to_fit();
  }
  if (buffer_.size() < size) buffer_.resize(size);
  std::size_t filled = 0;
  while (filled < size) {
    const ssize_t got = ::read(fd.get(), buffer_.data() + filled, size - filled);
    if (got < 0) {
      if (errno == EINTR) continue;
      fail("read", errno);
    }
    if (got == 0) break;  // became shorter: what is there is judged by the decoder
    filled += static_cast<std::size_t>(got);
  }
  return {buffer_.data(), filled};
}

}  // namespace shard::convert
