#include "remote/shard_cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include "base/bytes.hpp"
#include "base/checksum.hpp"
#include "base/file.hpp"
#include "base/file_io.hpp"
#include "base/publish.hpp"
#include "base/quote.hpp"
#include "remote/transit_area.hpp"

namespace shard {
namespace fs = std::filesystem;

namespace {

constexpr std::chrono::milliseconds kLockTurn{20};
constexpr std::string_view kProof = ".proof";
constexpr std::string_view kPart = ".part";

std::string read_boot_id() {
  try {
    const std::vector<std::byte> bytes = read_file("/proc/sys/kernel/random/boot_id", 64);
    const std::string_view text = as_text(bytes);
    return std::string(text.substr(0, text.find('\n')));
  } catch (const Error&) {
    return "unknown";
  }
}

const std::string& boot_id() {
  static const std::string id = read_boot_id();
  return id;
}

// Of the file that is proven. A write, and a file of the same name that is another one, change it.
std::string proof_text(int fd, const fs::path& path) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw_errno("cannot look at", path, errno);
  return fmt::format("shard cache 1\n{} {} {} {} {}.{} {}.{}\n", boot_id(), status.st_dev, status.st_ino,
                     status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec,
                     status.st_ctim.tv_nsec);
}

bool has_proof(const fs::path& file, int fd) {
  try {
    const std::vector<std::byte> proof = read_file(file.native() + std::string(kProof), 4096);
    return as_text(proof) == proof_text(fd, file);
  } catch (const Error&) {
    return false;
  }
}

std::uint64_t size_of(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

// Where room cannot be taken in advance, a disk becomes full while a shard is written. And a folder may be made read-only.
bool takes_nothing(const fs::path& folder) noexcept {
  constexpr std::uint64_t kLeastBytes = std::uint64_t{1} << 20U;
  std::error_code error;
  const fs::space_info disk = fs::space(folder, error);
  return (!error && disk.available < kLeastBytes) || ::access(folder.c_str(), W_OK) != 0;
}

bool is_entry_name(std::string_view name) {
  return name.size() == 33 + ShardCache::kSuffix.size() && name.ends_with(ShardCache::kSuffix) &&
         name[16] == '-' && from_hex(name.substr(0, 16)) && from_hex(name.substr(17, 16));
}

bool is_proof_name(std::string_view name) {
  return name.ends_with(kProof) && is_entry_name(name.substr(0, name.size() - kProof.size()));
}

// ".NAME" and the suffix: a file that is being filled, or is in transit.
bool is_passing_name(std::string_view name, std::string_view suffix) {
  return name.starts_with('.') && name.ends_with(suffix) &&
         is_entry_name(name.substr(1, name.size() - 1 - suffix.size()));
}

}  // namespace

ShardCache::ShardCache(fs::path folder, std::uint64_t max_bytes, std::uint64_t spare_bytes)
    : folder_(std::move(folder)), max_bytes_(max_bytes), spare_bytes_(spare_bytes) {
  std::error_code error;
  fs::create_directory(folder_, error);
  UniqueFd handle(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!handle) throw_errno("cannot open the cache folder", folder_, errno);
  handle_ = std::make_shared<const UniqueFd>(std::move(handle));
  folder_ = fs::absolute(folder_);
}

std::string ShardCache::entry_name(std::string_view address, std::uint64_t head_digest) {
  return fmt::format("{}-{}{}", to_hex(xxh3(address)), to_hex(head_digest), kSuffix);
}

bool ShardCache::has(const Entry& entry) const {
  const UniqueFd fd = open_plain(folder_ / entry.name, O_RDONLY);
  if (!fd || size_of(fd.get()) != entry.size_bytes || !has_proof(folder_ / entry.name, fd.get()))
    return false;
  ::unlink(part_of(entry).c_str());  // of a process that was killed while it waited
  return true;
}

fs::path ShardCache::part_of(const Entry& entry) const {
  return folder_ / ('.' + entry.name + std::string(kPart));
}

void ShardCache::write_proof(const std::string& name, int fd) const {
  try {
    remove_temporaries(folder_);  // of processes that were killed here
  } catch (const Error&) {        // another user's: they stay
  }
  replace_file(folder_ / (name + std::string(kProof)), proof_text(fd, folder_ / name));
}

// The part, locked, under its name. Waits for the process that has it.
std::optional<UniqueFd> ShardCache::lock_part(const fs::path& part, const std::stop_token& stop) const {
  UniqueFd fd = open_plain(part, O_RDWR | O_CREAT);
  if (!fd && takes_no_files(errno)) return std::nullopt;
  if (!fd) throw_errno("cannot create", part, errno);
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) throw_errno("cannot lock", part, errno);
    if (stop.stop_requested())
      throw Error(ErrorCode::cancelled, "stopped while another process fetches a shard");
    std::this_thread::sleep_for(kLockTurn);
  }
  return fd;
}

// Of all files in the folder but those of this entry. Each process lists the folder for each shard that it makes, so the sizes of files that do not change are remembered.
std::uint64_t ShardCache::bytes_of_others(const Entry& entry, const fs::path& part) const {
  std::uint64_t bytes = 0;
  std::error_code error;
  const std::lock_guard lock(mutex_);
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().native();
    if (it->path() == part || name == entry.name || name.ends_with(TransitArea::kSuffix)) continue;
    const auto known = sizes_.find(name);
    if (known != sizes_.end()) {
      bytes += known->second;
      continue;
    }
    std::error_code gone;
    const std::uint64_t size = fs::file_size(it->path(), gone);
    if (gone) continue;
    bytes += size;
    if (is_entry_name(name) || is_proof_name(name)) sizes_.emplace(name, size);
  }
  if (error) throw Error(ErrorCode::io, fmt::format("cannot list {}: {}", quoted(folder_), error.message()));
  return bytes;
}

// Takes the room for the entry. The folder is locked meanwhile, so that two processes do not take the same room.
bool ShardCache::reserve(int fd, const Entry& entry, const fs::path& part) const {
  const UniqueFd folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || ::flock(folder.get(), LOCK_EX) != 0)
    throw_errno("cannot lock the cache folder", folder_, errno);
  if (max_bytes_ != kUnlimited) {
    const std::uint64_t others = bytes_of_others(entry, part);
    if (others > max_bytes_ || entry.size_bytes > max_bytes_ - others) return false;
  }
  std::error_code error;
  if (spare_bytes_ > 0 && fs::space(folder_, error).available < entry.size_bytes + spare_bytes_) return false;
  try {
    if (size_of(fd) > entry.size_bytes) truncate(fd, 0, part);
    preallocate(fd, entry.size_bytes, part);
  } catch (const Error&) {  // the disk is full
    return false;
  }
  return true;
}

std::optional<UniqueFd> ShardCache::get(const Entry& entry, const Fetch& fetch, const Prove& prove,
                                        const std::stop_token& stop) const {
  const fs::path path = folder_ / entry.name;
  const fs::path part = part_of(entry);
  const auto proven = [&]() -> UniqueFd {
    UniqueFd fd = open_plain(path, O_RDONLY);
    return fd && size_of(fd.get()) == entry.size_bytes && has_proof(path, fd.get()) ? std::move(fd)
                                                                                    : UniqueFd();
  };
  if (UniqueFd fd = proven()) return fd;
  std::optional<UniqueFd> made = lock_part(part, stop);
  if (!made) return std::nullopt;
  // The process that had the lock may have finished, or given up.
  if (UniqueFd fd = proven()) {
    ::unlink(part.c_str());
    return fd;
  }
  if (!names_file(part, made->get())) return get(entry, fetch, prove, stop);
  try {
    if (UniqueFd fd = open_plain(path, O_RDONLY); fd && size_of(fd.get()) == entry.size_bytes) {
      try {  // its proof is of another start of the system, or is missing
        prove(fd.get());
        write_proof(entry.name, fd.get());
        ::unlink(part.c_str());
        return fd;
      } catch (const Error& error) {
        if (error.code() != ErrorCode::corrupt && error.code() != ErrorCode::io) throw;
      }
    }
    if (!reserve(made->get(), entry, part)) {
      ::unlink(part.c_str());
      return std::nullopt;
    }
    fetch(made->get());
    rename_file(part, path);
    const std::lock_guard lock(mutex_);
    sizes_[entry.name] = entry.size_bytes;
  } catch (const std::exception&) {
    const bool refused = takes_nothing(folder_);
    ::unlink(part.c_str());
    if (refused) return std::nullopt;
    throw;
  }
  try {
    write_proof(entry.name, made->get());
  } catch (const Error&) {  // a full disk: it is proven again by the next process
  }
  // Another open file of the same: a mapping would hold the lock as long as it exists.
  UniqueFd opened = open_plain(path, O_RDONLY);
  if (!opened)
    throw Error(ErrorCode::io, fmt::format("{} was removed while it was put into the cache", quoted(path)));
  return opened;
}

std::vector<CacheFile> list_cache(const fs::path& folder) {
  std::vector<CacheFile> files;
  std::error_code error;
  if (!fs::is_directory(folder, error))
    throw Error(ErrorCode::not_found, fmt::format("{} is not a folder", quoted(folder)));
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    CacheFile file{it->path().filename().native(), 0, CacheFile::State::foreign};
    const UniqueFd fd = open_plain(it->path(), O_RDONLY);
    if (fd) file.size_bytes = size_of(fd.get());
    if (is_proof_name(file.name)) continue;
    if (fd && is_entry_name(file.name))
      file.state = has_proof(it->path(), fd.get()) ? CacheFile::State::proven : CacheFile::State::unproven;
    if (fd && (is_passing_name(file.name, kPart) || is_passing_name(file.name, TransitArea::kSuffix) ||
               is_temporary_name(file.name)))
      file.state = CacheFile::State::unfinished;
    files.push_back(std::move(file));
  }
  if (error) throw Error(ErrorCode::io, fmt::format("cannot list {}: {}", quoted(folder), error.message()));
  std::sort(files.begin(), files.end(),
            [](const CacheFile& a, const CacheFile& b) { return a.name < b.name; });
  return files;
}

bool remove_cached(const fs::path& folder, const CacheFile& file) {
  if (file.state == CacheFile::State::foreign) return false;
  const fs::path path = folder / file.name;
  const UniqueFd fd = open_plain(path, O_RDONLY);
  if (file.state == CacheFile::State::unfinished && fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0)
    return false;
  std::error_code error;
  fs::remove(path.native() + std::string(kProof), error);
  fs::remove(path, error);
  if (error) throw Error(ErrorCode::io, fmt::format("cannot remove {}: {}", quoted(path), error.message()));
  return true;
}

}  // namespace shard
