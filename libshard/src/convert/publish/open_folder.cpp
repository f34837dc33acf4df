#include "convert/publish/open_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>

#include "base/files/file_io.hpp"
#include "base/text/quote.hpp"
#include "shard/error.hpp"

namespace shard::convert {

OpenFolder::OpenFolder(const std::filesystem::path& path)
    : fd_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}

bool OpenFolder::is_at(const std::filesystem::path& path) const noexcept {
  struct stat own {};
  struct stat there {};
  return ::fstat(fd_.get(), &own) == 0 && ::stat(path.c_str(), &there) == 0 && own.st_dev == there.st_dev &&
         own.st_ino == there.st_ino;
}

bool OpenFolder::move(const std::filesystem::path& name, const std::filesystem::path& to) const {
  if (::renameat(fd_.get(), name.c_str(), AT_FDCWD, to.c_str()) == 0) return true;
  if (errno != ENOENT) throw_errno("cannot rename a finished file to", to, errno);
  return false;
}

void refuse_changed(const std::filesystem::path& out) {
  throw Error(
      ErrorCode::resource,
      fmt::format("{} was changed by another process meanwhile: run the same command again", quoted(out)));
}

}  // namespace shard::convert
