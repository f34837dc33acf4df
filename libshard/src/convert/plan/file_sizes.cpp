#include "convert/plan/file_sizes.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include "convert/sources/open_archive.hpp"

namespace shard::convert {

std::optional<FileSizes::State> FileSizes::state_of(const std::string& path) {
  const std::size_t name = path.rfind('/') + 1;
  const std::string_view folder = std::string_view(path).substr(0, name);
  if (!any_ || folder != folder_) {
    any_ = true;
    folder_ = folder;
    fd_.reset();
  } else if (!fd_) {
    const std::filesystem::path at = root_ / folder_;
    fd_.reset(::open(at.empty() ? "." : at.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  struct stat info {};
  const int failed =
      fd_ ? ::fstatat(fd_.get(), path.c_str() + name, &info, 0) : ::stat((root_ / path).c_str(), &info);
  if (failed != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return State{static_cast<std::uint64_t>(info.st_size), file_stamp(info)};
}

}  // namespace shard::convert
