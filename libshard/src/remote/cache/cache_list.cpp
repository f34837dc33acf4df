#include "shard/cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/files/file_io.hpp"
#include "base/files/temp_file.hpp"
#include "base/text/quote.hpp"
#include "remote/cache/cache_files.hpp"
#include "remote/cache/cache_lock.hpp"
#include "remote/cache/transit_area.hpp"

namespace shard {
namespace fs = std::filesystem;

std::vector<CacheFile> list_cache(const fs::path& folder) {
  std::vector<CacheFile> files;
  std::error_code error;
  if (!fs::is_directory(folder, error))
    throw Error(ErrorCode::not_found, fmt::format("{} is not a folder", quoted(folder)));
  for (const std::string& name : names_in(folder)) {
    CacheFile file{name, 0, CacheFile::State::foreign};
    const fs::path path = folder / name;
    const UniqueFd fd = open_plain(path, O_RDONLY);
    if (fd) file.size_bytes = size_of(fd.get());
    if (is_proof_name(file.name)) continue;
    if (fd && is_entry_name(file.name))
      file.state = has_proof(path, fd.get()) ? CacheFile::State::proven : CacheFile::State::unproven;
    if (fd && (is_passing_name(file.name, kPartSuffix) || is_passing_name(file.name, TransitArea::kSuffix) ||
               is_temporary_name(file.name) || file.name == CacheLock::kFile))
      file.state = CacheFile::State::unfinished;
    files.push_back(std::move(file));
  }
  std::sort(files.begin(), files.end(),
            [](const CacheFile& a, const CacheFile& b) { return a.name < b.name; });
  return files;
}

bool remove_cached(const fs::path& folder, const CacheFile& file) {
  if (file.state == CacheFile::State::foreign) return false;
  const fs::path path = folder / file.name;
  UniqueFd fd = open_plain(path, O_RDWR);  // NFS locks only what can be written to
  if (!fd) fd = open_plain(path, O_RDONLY);
  if (file.state == CacheFile::State::unfinished && fd && lock_alone(fd.get()) == LockState::busy)
    return false;
  std::error_code error;
  fs::remove(path.native() + std::string(kProofSuffix), error);
  fs::remove(path, error);
  if (error) throw Error(ErrorCode::io, fmt::format("cannot remove {}: {}", quoted(path), error.message()));
  return true;
}

}  // namespace shard
