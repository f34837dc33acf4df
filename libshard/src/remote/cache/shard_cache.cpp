#include "remote/cache/shard_cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include "base/digest/checksum.hpp"
#include "base/files/file_io.hpp"
#include "base/files/publish.hpp"
#include "base/system/stopwatch.hpp"
#include "base/text/quote.hpp"
#include "remote/cache/cache_files.hpp"
#include "remote/cache/cache_lock.hpp"
#include "remote/cache/transit_area.hpp"

namespace shard {
namespace fs = std::filesystem;

namespace {

constexpr std::chrono::milliseconds kLockTurn{20};
constexpr double kFolderShare = 0.25;     // of the patience: for the lock of the folder
constexpr double kImpatient = 1.0 / 120;  // of it, once somebody was waited for in vain

// Where room cannot be taken in advance, a disk becomes full while a shard is written.
// And a folder may be made read-only.
bool takes_nothing(const fs::path& folder) noexcept {
  constexpr std::uint64_t kLeastBytes = std::uint64_t{1} << 20U;
  std::error_code error;
  const fs::space_info disk = fs::space(folder, error);
  return (!error && disk.available < kLeastBytes) || ::access(folder.c_str(), W_OK) != 0;
}

}  // namespace

// The part of a shard, locked, under its name until it is published. Else it is removed.
struct ShardCache::Part {
  Part(UniqueFd file, fs::path name) : fd(std::move(file)), path(std::move(name)) {}
  Part(Part&&) noexcept = default;
  Part& operator=(Part&&) = delete;
  ~Part() {
    if (!fd) return;
    if (names_file(path, fd.get())) ::unlink(path.c_str());
    unlock(fd.get());
  }

  UniqueFd fd;
  fs::path path;
};

ShardCache::ShardCache(fs::path folder, std::uint64_t max_bytes, std::uint64_t spare_bytes,
                       std::chrono::duration<double> patience)
    : folder_(std::move(folder)), max_bytes_(max_bytes), spare_bytes_(spare_bytes), patience_(patience) {
  std::error_code error;
  fs::create_directory(folder_, error);
  UniqueFd handle(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!handle) throw_errno("cannot open the cache folder", folder_, errno);
  handle_ = std::make_shared<const UniqueFd>(std::move(handle));
  folder_ = fs::absolute(folder_);
  try {
    remove_temporaries(folder_);  // of earlier versions that were killed here
  } catch (const Error&) {        // another user's: they stay
  }
}

std::string ShardCache::entry_name(std::string_view address, std::uint64_t head_digest) {
  return fmt::format("{}-{}{}", to_hex(xxh3(address)), to_hex(head_digest), kSuffix);
}

UniqueFd ShardCache::find(const Entry& entry) const {
  const fs::path path = folder_ / entry.name;
  UniqueFd fd = open_plain(path, O_RDONLY);
  if (!fd || size_of(fd.get()) != entry.size_bytes || !has_proof(path, fd.get())) return {};
  remove_unlocked(part_of(entry));  // of a process that was killed while it waited
  return fd;
}

fs::path ShardCache::part_of(const Entry& entry) const {
  return folder_ / ('.' + entry.name + std::string(kPartSuffix));
}

ShardCache::~ShardCache() { delete problem_.load(std::memory_order_acquire); }

std::string ShardCache::problem() const {
  const std::string* const problem = problem_.load(std::memory_order_acquire);
  return problem == nullptr ? std::string() : *problem;
}

void ShardCache::note(const std::string& problem) const {
  if (problem_.load(std::memory_order_acquire) != nullptr) return;
  auto first = std::make_unique<const std::string>(problem);
  const std::string* none = nullptr;
  if (problem_.compare_exchange_strong(none, first.get(), std::memory_order_acq_rel))
    static_cast<void>(first.release());
}

double ShardCache::patience() const noexcept {
  return patience_.count() * (waited_in_vain_ ? kImpatient : 1);
}

// Waits for the process that has it, as long as that one writes to it.
std::optional<ShardCache::Part> ShardCache::lock_part(const Entry& entry, const std::stop_token& stop) const {
  const fs::path path = part_of(entry);
  Stopwatch still;
  struct stat before {};
  for (;; std::this_thread::sleep_for(kLockTurn)) {
    UniqueFd fd = open_plain(path, O_RDWR | O_CREAT);
    if (!fd) {
      const int error = errno;
      const bool expected = takes_no_files(error) && takes_nothing(folder_);
      if (!expected && error != ENOSPC && error != EDQUOT)
        note(fmt::format("cannot open {}: {}; if another user left it, remove it or use another cache folder",
                         quoted(path), error == 0 ? "it is not a regular file" : errno_text(error)));
      return std::nullopt;
    }
    switch (lock_alone(fd.get())) {
      case LockState::taken: {
        Part part(std::move(fd), path);
        if (!names_file(path, part.fd.get())) break;  // whoever had it has finished
        if (is_ours(part.fd.get())) return part;
        if (!remove_file(path)) return std::nullopt;  // else another one, which nobody else can write to
        break;
      }
      case LockState::not_supported:
        note(fmt::format("cannot lock {}: {}; use a cache folder on a local disk", quoted(path),
                         errno_text(errno)));
        ::unlink(path.c_str());
        return std::nullopt;
      case LockState::busy: {
        if (stop.stop_requested())
          throw Error(ErrorCode::cancelled, "stopped while another process fetches a shard");
        struct stat now {};
        if (::fstat(fd.get(), &now) == 0 &&
            (now.st_ino != before.st_ino || now.st_mtim.tv_sec != before.st_mtim.tv_sec ||
             now.st_mtim.tv_nsec != before.st_mtim.tv_nsec))
          still.restart();
        before = now;
        if (still.seconds() < patience()) break;
        note(fmt::format(
            "{} is locked by a process that has not written to it for {:.0f} s: it may be stopped, "
            "or belong to another user ('lslocks' shows it); the shard is not kept here",
            quoted(path), still.seconds()));
        waited_in_vain_ = true;
        return std::nullopt;
      }
    }
  }
}

// Nothing: problem() says why.
std::optional<CacheLock> ShardCache::lock_folder(const std::stop_token& stop) const {
  try {
    auto lock = CacheLock::take(folder_, std::chrono::duration<double>(patience() * kFolderShare), stop);
    if (lock) {
      waited_in_vain_ = false;
      return lock;
    }
    note(fmt::format(
        "another process has the lock of the cache folder {}, and keeps it: it may be stopped, or belong to "
        "another user ('lslocks' shows it); shards are not kept here meanwhile",
        quoted(folder_)));
    waited_in_vain_ = true;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::cancelled) throw;
    note(error.what());
  }
  return std::nullopt;
}

// A file without a proof that counts: as of another start of the system, or of another user. `locked`: its
// part is, so that a proof can be written.
std::optional<ShardCache::Copy> ShardCache::prove_file(const Entry& entry, const Prove& prove, bool locked,
                                                       const std::stop_token& stop) const {
  const fs::path path = folder_ / entry.name;
  UniqueFd fd = open_plain(path, O_RDONLY);
  if (!fd || size_of(fd.get()) != entry.size_bytes) return std::nullopt;
  try {
    prove(fd.get());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt && error.code() != ErrorCode::io) throw;
    return std::nullopt;
  }
  const bool ours = is_ours(fd.get());
  if (!ours)
    note(
        fmt::format("{} belongs to another user, or others may write to it: every run compares it with its "
                    "digests, and every "
                    "sample again when it is read",
                    quoted(path)));
  if (ours && locked)
    if (const auto lock = lock_folder(stop); lock && has_room(entry, entry.size_bytes))
      write_proof(path, fd.get());
  return Copy{std::move(fd), ours};
}

// Whether all files have room with `size_bytes` of this shard, and its proof. The folder is locked.
bool ShardCache::has_room(const Entry& entry, std::uint64_t size_bytes) const {
  if (max_bytes_ == kUnlimited) return true;
  try {
    const std::uint64_t others = bytes_of_others(folder_, entry.name);
    return others <= max_bytes_ && size_bytes <= max_bytes_ - others &&
           kProofBytes <= max_bytes_ - others - size_bytes;
  } catch (const Error& error) {
    note(error.what());
    return false;
  }
}

// False: it is there, and cannot be removed.
bool ShardCache::remove_file(const fs::path& path) const {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return true;
  note(
      fmt::format("{} cannot be used, and not be removed: {}; use a cache folder of your own, or one where "
                  "all may remove "
                  "files (without the sticky bit)",
                  quoted(path), errno_text(errno)));
  return false;
}

// Takes the room for the shard and its proof. What is there under its name is of no use, and goes first.
bool ShardCache::reserve(const Part& part, const Entry& entry, const std::stop_token& stop) const {
  const auto lock = lock_folder(stop);
  if (!lock) return false;
  const fs::path path = folder_ / entry.name;
  if (::access(path.c_str(), R_OK) != 0 && errno == EACCES) {
    note(fmt::format("{} belongs to another user, and cannot be read: use a cache folder of your own",
                     quoted(path)));
    return false;
  }
  if (!remove_file(path) || !remove_file(path.native() + std::string(kProofSuffix))) return false;
  if (!has_room(entry, entry.size_bytes)) {
    remove_dead_parts(folder_, part.path);
    if (!has_room(entry, entry.size_bytes)) return false;
  }
  std::error_code unknown;
  const std::uint64_t available = fs::space(folder_, unknown).available;
  if (spare_bytes_ > 0 && available < entry.size_bytes + spare_bytes_) return false;
  try {
    if (size_of(part.fd.get()) > entry.size_bytes) truncate(part.fd.get(), 0, part.path);
    preallocate(part.fd.get(), entry.size_bytes, part.path);
  } catch (const Error& error) {
    if (available >= entry.size_bytes) note(error.what());
    return false;
  }
  return true;
}

// Gives the part its name and its proof.
std::optional<ShardCache::Copy> ShardCache::publish(Part& part, const Entry& entry,
                                                    const std::stop_token& stop) const {
  const fs::path path = folder_ / entry.name;
  const auto lock = lock_folder(stop);
  if (!lock) return std::nullopt;
  if (!names_file(part.path, part.fd.get()) || size_of(part.fd.get()) != entry.size_bytes) {
    note(fmt::format("{} was removed or changed by another program while a shard was written to it",
                     quoted(part.path)));
    return std::nullopt;
  }
  rename_file(part.path, path);
  // Another open file of the same: a mapping would hold the lock as long as it exists.
  UniqueFd opened = open_plain(path, O_RDONLY);
  if (!opened || !names_file(path, part.fd.get())) {
    note(fmt::format("{} was removed while it was put into the cache", quoted(path)));
    return std::nullopt;
  }
  write_proof(path, opened.get());
  const bool ours = is_ours(opened.get());
  return Copy{std::move(opened), ours};
}

std::optional<ShardCache::Copy> ShardCache::make(Part& part, const Entry& entry, const Fetch& fetch,
                                                 const std::stop_token& stop) const {
  if (!reserve(part, entry, stop)) return std::nullopt;
  try {
    fetch(part.fd.get());
    return publish(part, entry, stop);
  } catch (const std::exception&) {
    if (takes_nothing(folder_)) return std::nullopt;
    throw;
  }
}

std::optional<ShardCache::Copy> ShardCache::get(const Entry& entry, const Fetch& fetch, const Prove& prove,
                                                const std::stop_token& stop) const {
  if (UniqueFd fd = find(entry)) return Copy{std::move(fd), true};
  std::optional<Part> part = lock_part(entry, stop);
  // The process that had the lock may have finished, or given up.
  if (UniqueFd fd = find(entry)) return Copy{std::move(fd), true};
  if (auto copy = prove_file(entry, prove, part.has_value(), stop)) return copy;
  if (!part) return std::nullopt;
  return make(*part, entry, fetch, stop);
}

}  // namespace shard
