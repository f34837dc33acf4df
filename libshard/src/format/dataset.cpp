#include "shard/dataset.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/checksum.hpp"
#include "base/file.hpp"
#include "base/file_io.hpp"
#include "base/quote.hpp"
#include "base/temp_file.hpp"
#include "format/dataset_json.hpp"
#include "format/shard_match.hpp"
#include "shard/error.hpp"

namespace shard {
namespace fs = std::filesystem;

namespace {

// The state of the folder if one of its own files tells it. dataset.json is published before conversion.json
// is removed, so if neither is seen, one after the other, dataset.json is looked up once more.
std::optional<FolderState> stated(const fs::path& folder) {
  std::error_code error;
  for (const char* name : {kDatasetFile, kPlanFile, kDatasetFile}) {
    if (!fs::exists(fs::symlink_status(folder / name, error))) continue;
    return name == kPlanFile ? FolderState::incomplete : FolderState::complete;
  }
  return std::nullopt;
}

}  // namespace

FolderState folder_state(const fs::path& folder) {
  std::error_code error;
  const fs::file_status status = fs::status(folder, error);
  if (status.type() == fs::file_type::not_found) return FolderState::absent;
  if (error) throw Error(ErrorCode::io, fmt::format("cannot access {}: {}", quoted(folder), error.message()));
  if (status.type() != fs::file_type::directory) return FolderState::foreign;
  if (const auto state = stated(folder)) return *state;
  bool other = false;
  fs::directory_iterator entries(folder, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error))
    if (!is_temporary_name(entries->path().filename().native())) other = true;
  if (error) throw Error(ErrorCode::io, fmt::format("cannot list {}: {}", quoted(folder), error.message()));
  // Another process may have started to convert while the folder was listed.
  if (other) return stated(folder).value_or(FolderState::foreign);
  return FolderState::empty;
}

struct Dataset::Impl {
  fs::path path;  // as it was given to open()
  fs::path folder;
  DatasetInfo info;
  std::vector<std::uint64_t> ends;      // samples up to and including each shard
  std::uint64_t samples_per_shard = 1;  // of the first shard: where to look first

  std::shared_ptr<const UniqueFd> handle;  // of the folder: shards are looked up from it

  // The open shards; null: not open. Several threads may open the same one, and the first to store it wins.
  // There is no lock, which a forked child could find locked for ever.
  std::vector<std::atomic<const ShardReader*>> readers;

  Impl(fs::path given, fs::path where, UniqueFd opened, DatasetInfo&& read)
      : path(std::move(given)),
        folder(std::move(where)),
        info(std::move(read)),
        handle(std::make_shared<const UniqueFd>(std::move(opened))) {
    count_samples();
  }
  void count_samples() {
    readers = std::vector<std::atomic<const ShardReader*>>(info.shards.size());
    std::uint64_t end = 0;
    for (const ShardSummary& shard : info.shards) ends.push_back(end += shard.samples);
    if (end > 0) samples_per_shard = std::max<std::uint64_t>(1, ends.front());
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    for (const auto& reader : readers) delete reader.load(std::memory_order_acquire);
  }
  void check_match(const ShardReader& reader, const ShardSummary& expected) const;
  ShardReader open(const ShardSummary& shard) const;
  bool was_moved() const noexcept;
  bool is_lone_shard() const noexcept { return path != folder; }
};

// Whether the path now leads to another folder or to none: shardify --overwrite replaces the folder of a data
// set.
bool Dataset::Impl::was_moved() const noexcept {
  struct stat opened {};
  struct stat there {};
  if (::fstat(handle->get(), &opened) != 0) return false;
  if (::stat(folder.c_str(), &there) != 0) return true;
  return opened.st_dev != there.st_dev || opened.st_ino != there.st_ino;
}

ShardReader Dataset::Impl::open(const ShardSummary& shard) const {
  try {
    return ShardReader::open_in(handle, folder / shard.file);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found || !was_moved()) throw;
    throw Error(
        ErrorCode::not_found,
        fmt::format("{} was replaced or moved while it was in use, and its shard {} is gone: open the "
                    "data set again",
                    quoted(folder), quoted(shard.file)));
  }
}

void Dataset::Impl::check_match(const ShardReader& reader, const ShardSummary& expected) const {
  const auto it = shard_difference(reader, &expected, &info);
  if (!it) return;
  throw Error(
      ErrorCode::corrupt,
      fmt::format("shard {} does not belong to {}: its {} is {}, {} says {}; restore it or convert again",
                  quoted(reader.path()), quoted(folder), it->what, it->found, kDatasetFile, it->stated));
}

namespace {

UniqueFd open_folder_handle(const fs::path& folder) {
  UniqueFd handle(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!handle) throw_errno("cannot open folder", folder, errno);
  return handle;
}

}  // namespace

Dataset Dataset::open(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) ? open_shard(path) : open_folder(path);
}

Dataset Dataset::open_shard(const fs::path& file) {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  auto impl = std::make_shared<Impl>(file, folder, open_folder_handle(folder), DatasetInfo{});
  auto reader = std::make_unique<const ShardReader>(ShardReader::open_in(impl->handle, file));
  const ShardHeader& header = reader->header();
  impl->info = DatasetInfo{header};
  impl->info.inputs = header.samples;
  impl->info.shards = {
      {file.filename().string(), header.samples, reader->file_size_bytes(), header.head_digest}};
  impl->count_samples();
  impl->readers[0].store(reader.release(), std::memory_order_release);
  return Dataset(std::move(impl));
}

Dataset Dataset::open_folder(const fs::path& folder) {
  const fs::path file = folder / kDatasetFile;
  switch (folder_state(folder)) {
    case FolderState::absent:
      throw Error(ErrorCode::not_found, fmt::format("{} does not exist", quoted(folder)));
    case FolderState::incomplete:
      throw Error(
          ErrorCode::not_found,
          fmt::format("{} is an incomplete conversion: run the same shardify command again to finish it",
                      quoted(folder)));
    case FolderState::empty:
    case FolderState::foreign:
      throw Error(ErrorCode::not_found,
                  fmt::format("{} is not a data set: it has no {}", quoted(folder), kDatasetFile));
    case FolderState::complete:
      break;
  }
  std::optional<DatasetInfo> info;
  try {
    const std::vector<std::byte> bytes = read_file(file, kMaxDatasetBytes);
    info = parse_dataset(as_text(bytes));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt && error.code() != ErrorCode::unsupported) throw;
    throw Error(error.code(), fmt::format("{}: {}", quoted(folder), error.what()));
  }
  UniqueFd handle = open_folder_handle(folder);
  for (const ShardSummary& shard : info->shards) {
    const fs::path path = folder / shard.file;
    struct stat status {};
    if (::fstatat(handle.get(), shard.file.c_str(), &status, 0) != 0) {
      const int error = errno;
      if (error == ENOENT || error == ENOTDIR)
        throw Error(ErrorCode::corrupt,
                    fmt::format("shard {} is missing: restore it or convert again", quoted(path)));
      throw_errno("cannot look at", path, error);
    }
    if (!S_ISREG(status.st_mode))
      throw Error(ErrorCode::corrupt, fmt::format("shard {} is not a regular file", quoted(path)));
    const auto size = static_cast<std::uint64_t>(status.st_size);
    if (size != shard.size_bytes) {
      throw Error(ErrorCode::corrupt,
                  fmt::format("shard {} has {} bytes, {} says {}: restore it or convert again", quoted(path),
                              size, kDatasetFile, shard.size_bytes));
    }
  }
  return Dataset(std::make_shared<Impl>(folder, folder, std::move(handle), std::move(*info)));
}

Dataset::Dataset(std::shared_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}

const fs::path& Dataset::path() const noexcept { return impl_->path; }
bool Dataset::is_lone_shard() const noexcept { return impl_->is_lone_shard(); }
const fs::path& Dataset::folder() const noexcept { return impl_->folder; }
const DatasetInfo& Dataset::info() const noexcept { return impl_->info; }
std::uint64_t Dataset::size() const noexcept { return impl_->ends.back(); }

Dataset::Location Dataset::locate(std::uint64_t index) const {
  if (index >= size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("sample {} does not exist: {} has {}, numbered from 0", index,
                            quoted(impl_->path), size()));
  }
  const auto& ends = impl_->ends;
  // Shards mostly hold the same number of samples: then the guess is right.
  auto shard = static_cast<std::size_t>(index / impl_->samples_per_shard);
  if (shard >= ends.size() || index >= ends[shard] || (shard > 0 && index < ends[shard - 1]))
    shard = static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), index) - ends.begin());
  return {static_cast<std::uint32_t>(shard), index - (shard == 0 ? 0 : ends[shard - 1])};
}

void Dataset::read(std::uint64_t index, std::span<std::byte> out) const {
  const Location at = locate(index);
  shard(at.shard).read(at.sample, out);
}

std::int64_t Dataset::label(std::uint64_t index) const {
  const Location at = locate(index);
  return shard(at.shard).label(at.sample);
}

std::string Dataset::key(std::uint64_t index) const {
  const Location at = locate(index);
  return shard(at.shard).key(at.sample);
}

const ShardReader& Dataset::shard(std::uint32_t index) const {
  Impl& self = *impl_;
  if (index >= self.readers.size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("shard {} does not exist: {} has {}, numbered from 0", index, quoted(self.path),
                            self.readers.size()));
  }
  std::atomic<const ShardReader*>& place = self.readers[index];
  if (const ShardReader* const open = place.load(std::memory_order_acquire)) return *open;
  const ShardSummary& expected = self.info.shards[index];
  auto reader = std::make_unique<const ShardReader>(self.open(expected));
  self.check_match(*reader, expected);
  const ShardReader* winner = nullptr;
  if (place.compare_exchange_strong(winner, reader.get(), std::memory_order_acq_rel))
    winner = reader.release();
  return *winner;
}

const ShardReader* Dataset::opened(std::uint32_t index) const noexcept {
  return impl_->readers[index].load(std::memory_order_acquire);
}

}  // namespace shard
