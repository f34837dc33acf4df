#include "base/files/temp_file.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "base/files/publish.hpp"
#include "base/text/quote.hpp"
#include "shard/error.hpp"

namespace shard {
namespace {

std::uint64_t random_number() {
  std::uint64_t value = 0;
  while (::getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) {
    if (errno != EINTR) throw Error(ErrorCode::io, "the system has no random numbers (getrandom)");
  }
  return value;
}

// HOST: what may stand in a file name of any system, and no dot, which separates the parts of the name.
std::string read_host() {
  constexpr std::size_t kMaxHost = 32;
  char text[256] = {};
  if (::gethostname(text, sizeof text - 1) != 0) text[0] = '\0';
  std::string host(std::string_view(text).substr(0, kMaxHost));
  for (char& c : host) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (!plain) c = '-';
  }
  return host.empty() ? "-" : host;
}

struct Node {
  std::string host = read_host();
  std::string boot = to_hex(xxh3(read_boot_id())).substr(0, kBootDigits);
  static constexpr std::size_t kBootDigits = 8;
};
const Node& this_node() {
  static const Node node;
  return node;
}

std::int64_t seconds_of(clockid_t clock) noexcept {
  struct timespec time {};
  ::clock_gettime(clock, &time);
  return time.tv_sec;
}

// Where a temporary file was written, by its name.
enum class Origin { this_boot, earlier_boot, elsewhere };

Origin origin_in_name(std::string_view name) {
  constexpr std::string_view kTail = ".part";
  name.remove_suffix(kTail.size());
  name = name.substr(0, name.rfind('.'));  // RANDOM
  name = name.substr(0, name.rfind('.'));  // PID
  const auto dot = name.rfind('.');
  const std::string_view node = name.substr(dot + 1);
  const auto dash = node.rfind('-');
  const bool named = dot > 0 && dash != std::string_view::npos &&
                     node.size() - dash - 1 == Node::kBootDigits &&
                     node.substr(dash + 1).find_first_not_of("0123456789abcdef") == std::string_view::npos;
  if (!named) return Origin::this_boot;  // of an earlier version, which did not say
  if (node.substr(0, dash) != this_node().host) return Origin::elsewhere;
  return node.substr(dash + 1) == this_node().boot ? Origin::this_boot : Origin::earlier_boot;
}

// Whether the lock of a file of that origin says all about its writer: whoever wrote it on this machine
// before the system was started does not live.
bool lock_counts(Origin origin, const struct stat& status) noexcept {
  if (origin == Origin::earlier_boot) {
    const std::int64_t booted = seconds_of(CLOCK_REALTIME) - seconds_of(CLOCK_BOOTTIME);
    return status.st_mtime < booted;
  }
  return origin == Origin::this_boot;
}

bool is_old(const struct stat& status) noexcept {
  return seconds_of(CLOCK_REALTIME) - status.st_mtime > std::int64_t{kStaleHours} * 3600;
}

bool all_in(std::string_view text, std::string_view set) noexcept {
  return !text.empty() && text.find_first_not_of(set) == std::string_view::npos;
}

}  // namespace

std::string read_boot_id() {
  const UniqueFd fd(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  char text[64] = {};
  const ssize_t count = fd ? ::read(fd.get(), text, sizeof text) : 0;
  return {text, static_cast<std::size_t>(std::max<ssize_t>(count, 0))};
}

TempFile::TempFile(std::filesystem::path target) : target_(std::move(target)) {
  constexpr int kAttempts = 100;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    path_ = folder_of(target_) / fmt::format(".{}.{}-{}.{}.{}.part", target_.filename().native(),
                                             this_node().host, this_node().boot, ::getpid(),
                                             to_hex(random_number()));
    UniqueFd fd(::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (!fd) {
      if (errno == EEXIST || errno == EINTR) continue;
      throw_errno("cannot create a file for", target_, errno);
    }
    // Between creation and lock, someone who cleans up may take the lock and remove the file: then another
    // name.
    const LockState lock = lock_alone(fd.get());
    if (lock == LockState::busy || !names_file(path_, fd.get())) continue;
    fd_ = std::move(fd);
    return;
  }
  throw Error(ErrorCode::io,
              fmt::format("cannot create a file for {}: {} temporary files were removed by another process",
                          quoted(target_), kAttempts));
}

TempFile::~TempFile() { discard(); }

void TempFile::discard() noexcept {
  if (fd_) ::unlink(path_.c_str());
  fd_.reset();
}

void TempFile::finish() {
  fd_.reset();
  sync_folder(folder_of(target_));
}

void TempFile::publish() {
  sync_file(fd_.get(), target_);
  rename_file(path_, target_);
  finish();
}

void TempFile::publish_unflushed() {
  rename_file(path_, target_);
  fd_.reset();
}

bool TempFile::publish_new() {
  sync_file(fd_.get(), target_);
  const bool ours = rename_file_new(path_, target_);
  if (!ours) discard();
  finish();
  return ours;
}

void TempFile::publish_same() {
  sync_file(fd_.get(), target_);
  if (!rename_file_new(path_, target_)) {
    if (holds_same_bytes(fd_.get(), path_, target_))
      discard();
    else
      rename_file(path_, target_);
  }
  finish();
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

std::uint64_t remove_temporaries(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  std::uint64_t removed = 0;
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::filesystem::path& path = entries->path();
    if (!is_temporary_name(path.filename().native())) continue;
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) continue;  // its writer has just finished
    const bool lock_is_enough = lock_counts(origin_in_name(path.filename().native()), status);
    if (!lock_is_enough && !is_old(status)) continue;
    const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd) {
      if (errno == ENOENT) continue;
      throw_errno("cannot open the temporary file", path, errno);
    }
    const LockState lock = lock_alone(fd.get());
    if (lock == LockState::busy || (lock == LockState::not_supported && !is_old(status))) continue;
    if (!names_file(path, fd.get())) continue;
    if (::unlink(path.c_str()) != 0 && errno != ENOENT)
      throw_errno("cannot remove the temporary file", path, errno);
    ++removed;
  }
  if (error) throw_errno("cannot list folder", folder, error.value());
  return removed;
}

bool publish_new_file(const std::filesystem::path& path, std::string_view content) {
  TempFile file(path);
  pwrite_all(file.fd(), as_byte_span(content), 0, path);
  return file.publish_new();
}

void flush_folder(const std::filesystem::path& folder) {
  // Who may write into a folder but not read it can make names in it, and cannot flush them.
  if (::access(folder.c_str(), R_OK) != 0 && errno == EACCES) return;
  sync_folder(folder);
}

struct PendingFile::Impl {
  TempFile file;
  std::string waiting;
  std::uint64_t written = 0;

  void write() {
    pwrite_all(file.fd(), as_byte_span(waiting), written, file.target());
    written += waiting.size();
    waiting.clear();
  }
};

PendingFile::PendingFile(const std::filesystem::path& path)
    : impl_(std::make_unique<Impl>(Impl{TempFile(path), {}, 0})) {}
PendingFile::~PendingFile() = default;

void PendingFile::append(std::string_view text) {
  constexpr std::size_t kWriteBytes = std::size_t{1} << 20;
  impl_->waiting += text;
  if (impl_->waiting.size() >= kWriteBytes) impl_->write();
}

void PendingFile::append(std::span<const std::byte> bytes) {
  append(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void PendingFile::flush() { impl_->write(); }

void PendingFile::publish() {
  impl_->write();
  impl_->file.publish();
}

void replace_file(const std::filesystem::path& path, std::string_view content) {
  TempFile file(path);
  pwrite_all(file.fd(), as_byte_span(content), 0, path);
  file.publish();
}

}  // namespace shard
