#include "convert/publish/append_log.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/files/file_io.hpp"
#include "base/files/publish.hpp"
#include "base/text/quote.hpp"
#include "convert/publish/claim.hpp"
#include "convert/publish/journal.hpp"
#include "convert/publish/open_folder.hpp"
#include "convert/publish/staging.hpp"
#include "convert/publish/tables.hpp"
#include "shard/error.hpp"

namespace shard::convert {

namespace {

namespace fs = std::filesystem;

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
  if (!decided.move(kDatasetFile, out / kDatasetFile)) refuse_changed(out);
  flush_folder(out);
  clear_append(out);
  return true;
}

}  // namespace shard::convert
