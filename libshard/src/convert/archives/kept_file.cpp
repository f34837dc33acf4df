#include "convert/archives/kept_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <span>
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

fs::path kept_files_folder() {
  // Not those of whoever started a program that runs as another user.
  if (const char* const own = ::secure_getenv("SHARDIFY_INDEX_DIR")) return own;
  for (const auto& [name, below] : {std::pair("XDG_CACHE_HOME", ""), std::pair("HOME", ".cache")}) {
    const char* const folder = ::secure_getenv(name);
    if (folder != nullptr && fs::path(folder).is_absolute()) return fs::path(folder) / below / "shardify";
  }
  return {};
}

void tidy_kept_files(const fs::path& folder) noexcept {
  try {
    if (is_our_folder(folder)) remove_temporaries(folder);
  } catch (const std::exception&) {
    return;  // others stay
  }
}

ArchiveState::ArchiveState(int fd) : fd_(fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return;
  text_ = state_of(info);
  // Memory is never stored, so times of files in it say less.
  struct statfs system {};
  const bool in_memory =
      ::fstatfs(fd, &system) == 0 && (static_cast<std::uint64_t>(system.f_type) == TMPFS_MAGIC ||
                                      static_cast<std::uint64_t>(system.f_type) == RAMFS_MAGIC);
  const std::time_t last = std::max(info.st_ctim.tv_sec, info.st_mtim.tv_sec);
  settled_ = !in_memory && last + kSettledSeconds < std::time(nullptr);
}

void ArchiveState::flush() noexcept {
  if (settled_ && ::fdatasync(fd_) != 0) settled_ = false;
}

bool ArchiveState::is_settled() const noexcept {
  try {
    struct stat now {};
    return settled_ && ::fstat(fd_, &now) == 0 && state_of(now) == text_;
  } catch (const std::exception&) {
    return false;
  }
}

KeptFile::KeptFile(fs::path folder, std::string_view kind, std::string_view names, std::string_view state)
    : folder_(std::move(folder)), text_(fmt::format("shardify {} index 1\n{}\n{}\n", kind, kVersion, state)) {
  if (!folder_.empty() && !state.empty())
    file_ = folder_ / fmt::format("{}-{}.index", kind, to_hex(xxh3(names)));
}

std::string KeptFile::head(std::string_view bytes) const {
  return text_ + to_hex(xxh3(text_) ^ (xxh3(bytes) * 0x9E3779B97F4A7C15U)) + "\n";
}

std::optional<std::string> KeptFile::read() const noexcept {
  if (file_.empty()) return std::nullopt;
  try {
    const UniqueFd fd = open_plain(file_, O_RDONLY);
    struct stat info {};
    if (!fd || !is_our_folder(folder_) || ::fstat(fd.get(), &info) != 0 || !written_by_us_alone(info))
      return std::nullopt;
    const auto size = static_cast<std::uint64_t>(info.st_size);
    const std::size_t head_bytes = head({}).size();
    if (size < head_bytes || size > kMostBytes) return std::nullopt;
    std::string found(head_bytes, '\0');
    pread_all(fd.get(), std::as_writable_bytes(std::span(found)), 0, file_);
    if (!found.starts_with(text_)) return std::nullopt;  // of others, before the rest is read
    std::string bytes(static_cast<std::size_t>(size) - head_bytes, '\0');
    pread_all(fd.get(), std::as_writable_bytes(std::span(bytes)), head_bytes, file_);
    return found == head(bytes) ? std::optional(std::move(bytes)) : std::nullopt;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

bool KeptFile::write(std::string_view bytes) const noexcept {
  if (file_.empty()) return false;
  try {
    std::error_code error;
    fs::create_directories(folder_.parent_path(), error);
    if (::mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) return false;
    if (!is_our_folder(folder_)) return false;
    const std::string head = this->head(bytes);
    TempFile file(file_);
    if (::fchmod(file.fd(), 0600) != 0) return false;  // a umask may let others write
    pwrite_all(file.fd(), as_byte_span(head), 0, file_);
    pwrite_all(file.fd(), as_byte_span(bytes), head.size(), file_);
    file.publish_unflushed();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace shard::convert
