#include "shardctl/page/new_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <random>
#include <string_view>
#include <system_error>

#include "base/files/file_io.hpp"
#include "base/text/quote.hpp"
#include "shard/error.hpp"
#include "shard/remote.hpp"
#include "shardctl/dataset/files.hpp"

namespace shard::ctl {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kPrefix = ".shardctl-page-";

UniqueFd open_folder(const fs::path& folder) {
  return UniqueFd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
}

void remove_left_over(const fs::path& parent) {
  std::error_code ignored;
  for (fs::directory_iterator at(parent, ignored), end; !ignored && at != end; at.increment(ignored)) {
    if (!at->path().filename().native().starts_with(kPrefix)) continue;
    const UniqueFd folder = open_folder(at->path());
    if (!folder || flock(folder.get(), LOCK_EX | LOCK_NB) != 0) continue;
    std::error_code not_removed;  // it only takes space
    fs::remove_all(at->path(), not_removed);
  }
}

// Locked, so that no other process takes it for left over.
UniqueFd make_locked_folder(const fs::path& parent, fs::path& path) {
  std::random_device random;
  constexpr int kAttempts = 100;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    path = parent / fmt::format("{}{:08x}{:08x}", kPrefix, random(), random());
    if (mkdir(path.c_str(), 0777) != 0) {
      if (errno == EEXIST) continue;
      throw_errno("cannot make a folder in", parent, errno);
    }
    UniqueFd folder = open_folder(path);
    // Another process may have removed it before it was locked. Some file systems have no locks for folders.
    if (folder && (flock(folder.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) && fs::exists(path))
      return folder;
  }
  throw Error(ErrorCode::io, fmt::format("cannot make a folder in {}: {} were removed by another process",
                                         quoted(parent), kAttempts));
}

fs::path absolute_target(const fs::path& target) {
  std::error_code error;
  fs::path absolute = fs::weakly_canonical(fs::absolute(target, error), error);
  if (error || absolute.empty()) absolute = target;
  return absolute.has_filename() ? absolute : absolute.parent_path();
}

[[noreturn]] void refuse_target(const fs::path& target, const std::string& why) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", quoted(target), why));
}

}  // namespace

void write_new_file(const fs::path& path, std::span<const std::byte> bytes) {
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file) throw_errno("cannot create", path, errno);
  pwrite_all(file.get(), bytes, 0, path);
}

NewFolder::NewFolder(const fs::path& target, const std::function<bool(const fs::path&)>& is_ours)
    : target_(absolute_target(target)) {
  if (is_remote(target)) refuse_target(target, "is an address, and this writes to a folder: give one");
  std::error_code error;
  if (is_present(target_)) {
    if (!fs::is_directory(target_, error)) refuse_target(target_, "is a file; give a new folder");
    if (!fs::is_empty(target_, error)) {
      if (error)
        throw Error(ErrorCode::io,
                    fmt::format("{}: cannot list the folder: {}", quoted(target_), error.message()));
      if (!is_ours)
        refuse_target(target_,
                      "not empty; give a new folder, or --overwrite to replace a page that shardctl made");
      if (!is_ours(target_))
        refuse_target(target_,
                      "holds other files than a page that shardctl made, so --overwrite does not replace "
                      "it; give a new folder");
      replaces_ = true;
    }
  }
  const fs::path parent = folder_of(target_);
  make_folder(parent);
  remove_left_over(parent);
  lock_ = make_locked_folder(parent, path_);
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

void NewFolder::publish() {
  if (replaces_ && renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) == 0) {
    sync_folder(folder_of(target_));
    return;  // the old one is removed with this object
  }
  if (replaces_) {  // no exchange on this file system: for a moment there is neither
    const fs::path old = path_.native() + "-old";
    rename_file(target_, old);
    rename_file(path_, target_);
    path_ = old;
    sync_folder(folder_of(target_));
    return;
  }
  // Replaces an empty folder, and nothing else.
  if (rename(path_.c_str(), target_.c_str()) != 0) {
    if (errno == ENOTEMPTY || errno == EEXIST)
      refuse_target(target_, "another process has written to it meanwhile; give a new folder");
    throw_errno("cannot rename the finished page to", target_, errno);
  }
  path_.clear();
  sync_folder(folder_of(target_));
}

}  // namespace shard::ctl
