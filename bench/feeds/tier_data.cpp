#include "feeds/tier_data.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <system_error>

#include <fmt/core.h>

#include "base/files/file_io.hpp"
#include "base/text/quote.hpp"
#include "cli/text.hpp"
#include "harness/measure.hpp"
#include "limits/page_cache.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"

namespace shard::bench {
namespace {

namespace fs = std::filesystem;

// Only clean pages can be dropped from the page cache: what is written is synced.
void copy_file(const fs::path& from, const fs::path& to, const std::atomic<bool>& cancel) {
  std::vector<std::byte> buffer(std::size_t{1} << 20U);
  const UniqueFd source = open_read(from);
  const UniqueFd target(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!target) throw_errno("cannot make", to, errno);
  const std::uint64_t size = regular_file_size(source.get(), from);
  for (std::uint64_t at = 0; at < size; at += buffer.size()) {
    stop_when(cancel, kStoppedAndRemoved);
    const auto part = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), size - at));
    pread_all(source.get(), part, at, from);
    pwrite_all(target.get(), part, at, to);
  }
  sync_file(target.get(), to);
}

std::uint64_t device_of(const fs::path& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? static_cast<std::uint64_t>(info.st_dev) : 0;
}

}  // namespace

TierImages match_images(const Dataset& dataset, const fs::path& images, std::uint64_t count) {
  TierImages matched;
  matched.root = images;
  if (!fs::is_directory(images))
    throw Error(ErrorCode::not_found, fmt::format("--images {}: no such folder", quoted(images)));
  const std::uint64_t wanted = count == 0 ? dataset.size() : std::min(count, dataset.size());
  for (std::uint64_t i = 0; i < wanted; ++i) {
    const std::uint64_t sample = i * dataset.size() / wanted;
    const std::string key = dataset.key(sample);
    std::string path = unescape_key(key);
    std::error_code error;
    const std::uintmax_t size = fs::file_size(images / path, error);
    if (error)
      throw Error(ErrorCode::not_found,
                  fmt::format("--images {}: sample {} of {} is not there: give the folder that the data set "
                              "was made of",
                              quoted(images), quoted_key(key), quoted(dataset.folder())));
    matched.paths.push_back(std::move(path));
    matched.samples.push_back(sample);
    matched.bytes += size;
  }
  return matched;
}

std::uint64_t shard_bytes(const DatasetInfo& info) {
  std::uint64_t bytes = 0;
  for (const ShardSummary& shard : info.shards) bytes += shard.size_bytes;
  return bytes;
}

TierPlace parse_tier(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == text.size())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--tier {}: expected NAME=PATH, the path of a folder on it", quoted(text)));
  return {text.substr(0, equals), text.substr(equals + 1)};
}

TierData::TierData(const TierPlace& place, const std::vector<fs::path>& datasets, const TierImages& images,
                   const std::atomic<bool>& cancel, const std::function<void(const std::string&)>& note)
    : folder_(place.folder), datasets_(datasets), images_(images) {
  if (place.folder.empty()) {
    folder_ = datasets_.front();
    if (images_.problem.empty() && device_of(images_.root) != device_of(folder_))
      images_.problem = "the images lie on another filesystem than the data set: name both tiers by --tier";
  } else {
    if (!fs::is_directory(place.folder))
      throw Error(ErrorCode::not_found,
                  fmt::format("{}: no such folder; is it mounted?", quoted(place.folder)));
    temp_.emplace(place.folder);
    folder_ = temp_->path();
    copy(cancel, note);
  }
  memory_ = is_memory(folder_);
}

void TierData::copy(const std::atomic<bool>& cancel, const std::function<void(const std::string&)>& note) {
  std::uint64_t bytes = images_.bytes;
  for (const fs::path& folder : datasets_) bytes += shard_bytes(Dataset::open(folder).info());
  const std::uint64_t room = fs::space(folder_).available;
  if (bytes + bytes / 50 + (std::uint64_t{1} << 20U) > room)
    throw Error(
        ErrorCode::resource,
        fmt::format("{} has {} left, the data take {}: free some, or give a smaller data set or --count",
                    quoted(folder_), cli::human_bytes(room), cli::human_bytes(bytes)));
  try {
    for (std::size_t i = 0; i < datasets_.size(); ++i) {
      note(fmt::format("copying {} to {}", quoted(datasets_[i]), quoted(folder_)));
      const fs::path to = folder_ / fmt::format("data-{}", i);
      fs::create_directory(to);
      const Dataset dataset = Dataset::open(datasets_[i]);
      for (const ShardSummary& shard : dataset.info().shards)
        copy_file(datasets_[i] / shard.file, to / shard.file, cancel);
      copy_file(datasets_[i] / kDatasetFile, to / kDatasetFile, cancel);
      datasets_[i] = to;
    }
    note(fmt::format("copying images to {}", quoted(folder_)));
    const fs::path root = folder_ / "images";
    for (const std::string& path : images_.paths) {
      fs::create_directories((root / path).parent_path());
      copy_file(images_.root / path, root / path, cancel);
    }
    images_.root = root;
  } catch (const fs::filesystem_error& error) {
    throw Error(ErrorCode::io, error.what());
  }
}

std::vector<fs::path> TierData::shard_files(std::size_t dataset) const {
  std::vector<fs::path> files;
  const Dataset open = Dataset::open(datasets_[dataset]);
  for (const ShardSummary& shard : open.info().shards) files.push_back(datasets_[dataset] / shard.file);
  return files;
}

std::vector<fs::path> TierData::image_files() const {
  std::vector<fs::path> files;
  for (const std::string& path : images_.paths) files.push_back(images_.root / path);
  return files;
}

}  // namespace shard::bench
