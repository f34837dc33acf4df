#include "remote/cache/cache_files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "base/files/file_io.hpp"
#include "base/files/temp_file.hpp"
#include "base/text/words.hpp"
#include "remote/cache/cache_lock.hpp"
#include "remote/cache/shard_cache.hpp"
#include "remote/cache/transit_area.hpp"

namespace shard {
namespace fs = std::filesystem;

namespace {

const std::string& boot_id() {
  static const std::string id(trimmed(read_boot_id()));
  return id;
}

// Of the file that is proven. A write, and a file of the same name that is another one, change it.
std::string proof_text(const struct stat& status) {
  return fmt::format("shard cache 1\n{} {} {} {} {}.{} {}.{}\n", boot_id(), status.st_dev, status.st_ino,
                     status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec,
                     status.st_ctim.tv_nsec);
}

fs::path proof_of(const fs::path& file) { return file.native() + std::string(kProofSuffix); }

struct CloseFolder {
  void operator()(DIR* folder) const noexcept { ::closedir(folder); }
};

}  // namespace

bool is_entry_name(std::string_view name) {
  return name.size() == 33 + ShardCache::kSuffix.size() && name.ends_with(ShardCache::kSuffix) &&
         name[16] == '-' && from_hex(name.substr(0, 16)) && from_hex(name.substr(17, 16));
}

bool is_proof_name(std::string_view name) {
  return name.ends_with(kProofSuffix) && is_entry_name(name.substr(0, name.size() - kProofSuffix.size()));
}

bool is_passing_name(std::string_view name, std::string_view suffix) {
  return name.starts_with('.') && name.ends_with(suffix) &&
         is_entry_name(name.substr(1, name.size() - 1 - suffix.size()));
}

bool is_ours(int fd) noexcept {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
         (status.st_uid == ::geteuid() || status.st_uid == 0) &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;  // with an access list, the group's bits are its mask
}

std::uint64_t size_of(int fd) noexcept {
  struct stat status {};
  return ::fstat(fd, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

bool has_proof(const fs::path& file, int fd) {
  struct stat status {};
  if (boot_id().empty() || !is_ours(fd) || ::fstat(fd, &status) != 0) return false;
  const UniqueFd proof = open_plain(proof_of(file), O_RDONLY);
  const std::string expected = proof_text(status);
  if (!proof || !is_ours(proof.get()) || size_of(proof.get()) != expected.size()) return false;
  std::string found(expected.size(), '\0');
  const ssize_t count = ::pread(proof.get(), found.data(), found.size(), 0);
  return count == static_cast<ssize_t>(found.size()) && found == expected;
}

// Not renamed from another name, which would be one more file to count. A piece of a proof proves nothing,
// and it is not flushed: it does not outlive the start of the system.
bool write_proof(const fs::path& file, int fd) noexcept {
  try {
    const fs::path proof = proof_of(file);
    struct stat status {};
    if (boot_id().empty() || !is_ours(fd) || ::fstat(fd, &status) != 0) return false;
    if (::unlink(proof.c_str()) != 0 && errno != ENOENT) return false;
    const UniqueFd out(::open(proof.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!out) return false;
    const std::string text = proof_text(status);
    if (::write(out.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) return true;
    ::unlink(proof.c_str());
    return false;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void remove_dead_parts(const fs::path& folder, const fs::path& own) noexcept {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path() != own && is_passing_name(it->path().filename().native(), kPartSuffix))
      remove_unlocked(it->path());
}

std::uint64_t bytes_of_others(const fs::path& folder, std::string_view entry) {
  const std::unique_ptr<DIR, CloseFolder> open(::opendir(folder.c_str()));
  if (!open) throw_errno("cannot list the cache folder", folder, errno);
  std::uint64_t bytes = 0;
  std::unordered_map<std::string, std::uint64_t>
      proofs;  // by shard: the bytes of its proof, which is there or will be
  errno = 0;
  while (const dirent* const found = ::readdir(open.get())) {
    const std::string_view name = found->d_name;
    const std::string_view shard = is_entry_name(name)   ? name
                                   : is_proof_name(name) ? name.substr(0, name.size() - kProofSuffix.size())
                                   : is_passing_name(name, kPartSuffix)
                                       ? name.substr(1, name.size() - 1 - kPartSuffix.size())
                                       : std::string_view();
    struct stat status {};
    const bool counts = !is_passing_name(name, TransitArea::kSuffix) && (shard.empty() || shard != entry) &&
                        ::fstatat(::dirfd(open.get()), found->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                        !S_ISDIR(status.st_mode);
    if (counts) {
      const auto size = static_cast<std::uint64_t>(status.st_size);
      std::uint64_t none = 0;
      std::uint64_t& proof =
          shard.empty() ? none : proofs.try_emplace(std::string(shard), kProofBytes).first->second;
      if (is_proof_name(name))
        proof = std::max(proof, size);
      else
        bytes += size;
    }
    errno = 0;
  }
  if (errno != 0) throw_errno("cannot list the cache folder", folder, errno);
  for (const auto& [shard, size] : proofs) bytes += size;
  return bytes;
}

}  // namespace shard
