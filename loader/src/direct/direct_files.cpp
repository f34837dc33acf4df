#include "direct/direct_files.hpp"

#include <dirent.h>
#include <sys/resource.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "shard/error.hpp"

namespace shard {

namespace {

constexpr std::size_t kMostFiles = 256;
constexpr std::size_t kLeastFiles = 8;
constexpr std::size_t kForOthers = 32;  // left for the rest of the process

// About how many descriptors this process has open. 0: unknown.
std::size_t open_descriptors() {
  DIR* const folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  std::size_t count = 0;
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

std::size_t descriptors_for_us() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kMostFiles;
  const std::size_t taken = open_descriptors() + kForOthers;
  const auto all = static_cast<std::size_t>(limit.rlim_cur);
  // Half of what is left: other loaders of this process need descriptors too.
  return std::clamp(all > taken ? (all - taken) / 2 : 0, kLeastFiles, kMostFiles);
}

}  // namespace

DirectFiles::DirectFiles(Dataset dataset) : DirectFiles(std::move(dataset), descriptors_for_us()) {}

DirectFiles::DirectFiles(Dataset dataset, std::size_t descriptors)
    : dataset_(std::move(dataset)), limit_(std::max<std::size_t>(1, descriptors)) {}

bool DirectFiles::close_one() {
  for (auto at = files_.end(); at != files_.begin();) {
    --at;
    if (at->file.use_count() > 1) continue;
    by_shard_.erase(at->shard);
    files_.erase(at);
    return true;
  }
  return false;
}

std::shared_ptr<const DirectFile> DirectFiles::open(std::uint32_t shard) {
  if (const auto found = by_shard_.find(shard); found != by_shard_.end()) {
    files_.splice(files_.begin(), files_, found->second);
    return files_.front().file;
  }
  if (files_.size() >= limit_ && !close_one()) return nullptr;
  const ShardReader& reader = dataset_.shard(shard);
  for (;;) {
    try {
      files_.push_front({shard, std::make_shared<const DirectFile>(reader)});
      break;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::resource) throw;
      // The rest of the process uses more descriptors than expected, so use fewer from now on.
      limit_ = std::max<std::size_t>(1, files_.size());
      if (files_.empty()) throw;
      if (!close_one()) return nullptr;
    }
  }
  by_shard_[shard] = files_.begin();
  return files_.front().file;
}

}  // namespace shard
