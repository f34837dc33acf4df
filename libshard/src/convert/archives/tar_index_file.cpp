#include "convert/archives/tar_index_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <system_error>
#include <utility>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "base/files/file_io.hpp"
#include "base/files/publish.hpp"
#include "base/files/temp_file.hpp"
#include "base/unique_handle.hpp"
#include "shard/version.hpp"

namespace shard::convert {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 30U;
constexpr std::time_t kSettledSeconds = 2;

std::string state_of(const struct stat& info) {
  return fmt::format("{} {} {} {}.{:09} {}.{:09}", info.st_dev, info.st_ino, info.st_size,
                     info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
}

bool written_by_us_alone(const struct stat& info) {
  return (info.st_uid == ::geteuid() || info.st_uid == 0) && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool is_our_folder(const fs::path& folder) {
  struct stat info {};
  return ::lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && written_by_us_alone(info);
}

}  // namespace

fs::path tar_index_folder() {
  // Not those of whoever started a program that runs as another user.
  if (const char* const own = ::secure_getenv("SHARDIFY_INDEX_DIR")) return own;
  for (const auto& [name, below] : {std::pair("XDG_CACHE_HOME", ""), std::pair("HOME", ".cache")}) {
    const char* const folder = ::secure_getenv(name);
    if (folder != nullptr && fs::path(folder).is_absolute()) return fs::path(folder) / below / "shardify";
  }
  return {};
}

TarIndexFile::TarIndexFile(fs::path folder, const fs::path& archive, int fd)
    : folder_(std::move(folder)), fd_(fd) {
  struct stat info {};
  std::error_code error;
  const fs::path whole = fs::absolute(archive, error);
  if (folder_.empty() || error || ::fstat(fd, &info) != 0) return;
  file_ = folder_ / ("tar-" + to_hex(xxh3(whole.native())) + ".index");
  state_ = state_of(info);
  // Memory is never stored, so times of files in it say less.
  struct statfs system {};
  const bool in_memory =
      ::fstatfs(fd, &system) == 0 && (static_cast<std::uint64_t>(system.f_type) == TMPFS_MAGIC ||
                                      static_cast<std::uint64_t>(system.f_type) == RAMFS_MAGIC);
  const std::time_t last = std::max(info.st_ctim.tv_sec, info.st_mtim.tv_sec);
  settled_ = !in_memory && last + kSettledSeconds < std::time(nullptr);
}

void TarIndexFile::flush() noexcept {
  struct stat info {};
  if (!settled_ || ::fdatasync(fd_) != 0 || ::fstat(fd_, &info) != 0 || state_of(info) != state_)
    settled_ = false;
}

std::string TarIndexFile::head(std::string_view bytes) const {
  const std::string text = fmt::format("shardify tar index 1\n{}\n{}\n", kVersion, state_);
  return text + to_hex(xxh3(text) ^ (xxh3(bytes) * 0x9E3779B97F4A7C15U)) + "\n";
}

std::optional<TarIndex> TarIndexFile::read() const noexcept {
  if (state_.empty()) return std::nullopt;
  try {
    const UniqueFd fd = open_plain(file_, O_RDONLY);
    struct stat info {};
    struct stat archive {};
    if (!fd || !is_our_folder(folder_) || ::fstat(fd.get(), &info) != 0 || !written_by_us_alone(info) ||
        ::fstat(fd_, &archive) != 0)
      return std::nullopt;
    const auto size = static_cast<std::uint64_t>(info.st_size);
    const std::size_t head_bytes = head({}).size();
    if (size < head_bytes || size > kMostBytes) return std::nullopt;
    std::string found(head_bytes, '\0');
    pread_all(fd.get(), std::as_writable_bytes(std::span(found)), 0, file_);
    // Another archive's, before the rest is read.
    constexpr std::size_t kDigestBytes = 17;
    if (!found.starts_with(head({}).substr(0, head_bytes - kDigestBytes))) return std::nullopt;
    std::string bytes(static_cast<std::size_t>(size) - head_bytes, '\0');
    pread_all(fd.get(), std::as_writable_bytes(std::span(bytes)), head_bytes, file_);
    if (found != head(bytes)) return std::nullopt;
    return TarIndex::parse(std::move(bytes), static_cast<std::uint64_t>(archive.st_size));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

bool TarIndexFile::write(const TarIndexWriter& index) const noexcept {
  if (state_.empty() || !settled_ || index.entries() < kFewestEntries) return false;
  try {
    struct stat now {};
    if (::fstat(fd_, &now) != 0 || state_of(now) != state_) return false;
    std::error_code error;
    fs::create_directories(folder_.parent_path(), error);
    if (::mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) return false;
    if (!is_our_folder(folder_)) return false;
    const std::string head = this->head(index.bytes());
    TempFile file(file_);
    if (::fchmod(file.fd(), 0600) != 0) return false;  // a umask may let others write
    pwrite_all(file.fd(), as_byte_span(head), 0, file_);
    pwrite_all(file.fd(), as_byte_span(index.bytes()), head.size(), file_);
    file.publish_unflushed();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void tidy_tar_indices(const fs::path& folder) noexcept {
  try {
    if (is_our_folder(folder)) remove_temporaries(folder);
  } catch (const std::exception&) {
    return;  // others stay
  }
}

}  // namespace shard::convert
