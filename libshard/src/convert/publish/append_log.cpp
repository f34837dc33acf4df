#include "convert/publish/append_log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/files/file_io.hpp"
#include "base/files/publish.hpp"
#include "base/text/quote.hpp"
#include "base/unique_handle.hpp"
#include "convert/publish/claim.hpp"
#include "convert/publish/journal.hpp"
#include "convert/publish/staging.hpp"
#include "convert/publish/tables.hpp"
#include "shard/error.hpp"

namespace shard::convert {

namespace {

namespace fs = std::filesystem;

// A folder of an append, as it is now. Where locks exclude nobody, another process may finish this append and
// put its own files into a new folder of the same name. By path, they would be moved as if they were ours.
class OpenFolder {
 public:
  explicit OpenFolder(const fs::path& path) : fd_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}
  bool is_there() const noexcept { return static_cast<bool>(fd_); }
  // False: it is not in the folder.
  bool move(const fs::path& name, const fs::path& to) const {
    if (::renameat(fd_.get(), name.c_str(), AT_FDCWD, to.c_str()) == 0) return true;
    if (errno != ENOENT) throw_errno("cannot rename a finished file to", to, errno);
    return false;
  }

 private:
  UniqueFd fd_;
};

bool starts_with(const std::vector<ShardSummary>& all, const std::vector<ShardSummary>& first) {
  return first.size() < all.size() && std::equal(first.begin(), first.end(), all.begin());
}

// Where a shard of the append is: still in the staging folder, or moved.
bool has_shard(const fs::path& staged, const fs::path& moved, std::uint64_t size_bytes) {
  const auto is_it = [&](const fs::path& path) {
    std::error_code error;
    return fs::is_regular_file(path, error) && fs::file_size(path, error) == size_bytes && !error;
  };
  return is_it(staged) || (!is_present(staged) && is_it(moved));
}

std::optional<DatasetInfo> read_decided(const fs::path& folder) {
  try {
    return read_dataset_info(folder);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt && error.code() != ErrorCode::not_found) throw;
    return std::nullopt;
  }
}

}  // namespace

// Removes the staging folder, the log by which a stopped run is recognised last.
void clear_append(const fs::path& out) {
  const fs::path staging = out / kStagingFolder;
  const fs::path log = out / kAppendLog;
  std::error_code error;
  const auto remove_others = [&](const fs::path& folder, const fs::path& keep) {
    std::vector<fs::path> found;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
      if (it->path() != keep) found.push_back(it->path());
    for (const fs::path& path : found) {
      if (!error) fs::remove_all(path, error);
    }
    if (error)
      throw Error(ErrorCode::io,
                  fmt::format("cannot remove what is in {}: {}", quoted(folder), error.message()));
  };
  remove_others(staging, log);
  if (is_present(log)) remove_others(log, log / kDatasetFile);
  if (is_present(log / kDatasetFile)) remove_file(log / kDatasetFile);
  ::rmdir(log.c_str());
  ::rmdir(staging.c_str());
  remove_temporaries(out);  // a stopped run may have left one beside dataset.json
  flush_folder(out);
}

bool finish_append(const fs::path& out) {
  const fs::path staging = out / kStagingFolder;
  const fs::path log = out / kAppendLog;
  const OpenFolder staged(staging);
  const OpenFolder decided(log);
  if (!decided.is_there()) return false;
  const auto whole = read_decided(log);
  const auto added = read_decided(staging);
  const auto now = read_decided(out);
  // If not: finished, decided for another data set than the one that is there now, or not by us.
  const bool fits = whole && added && now && starts_with(whole->shards, now->shards) &&
                    whole->shards.size() == now->shards.size() + added->shards.size();
  if (!fits) {
    clear_append(out);
    return false;
  }
  const std::size_t before = now->shards.size();
  for (std::size_t i = 0; i < added->shards.size(); ++i) {
    const ShardSummary& shard = whole->shards[before + i];
    if (has_shard(staging / added->shards[i].file, out / shard.file, shard.size_bytes)) continue;
    if (!is_present(log / kRejectsFile))
      throw Error(ErrorCode::corrupt,
                  fmt::format("an append to {} was stopped, and its shard {} has been lost "
                              "since: restore it",
                              quoted(out), quoted(out / shard.file)));
    clear_append(out);  // it starts anew
    return false;
  }
  for (std::size_t i = 0; i < added->shards.size(); ++i)
    staged.move(added->shards[i].file, out / whole->shards[before + i].file);
  flush_folder(out);
  decided.move(kRejectsFile, out / kRejectsFile);
  decided.move(kInputsFile, out / kInputsFile);
  flush_folder(out);
  // The file of the log itself: it is there once, so that of two processes that see no locks one can do this.
  if (!decided.move(kDatasetFile, out / kDatasetFile))
    throw Error(
        ErrorCode::resource,
        fmt::format("{} was changed by another process meanwhile: run the same command again", quoted(out)));
  flush_folder(out);
  clear_append(out);
  return true;
}

}  // namespace shard::convert
