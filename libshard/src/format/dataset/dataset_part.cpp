#include "format/dataset/dataset_part.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include "base/bytes.hpp"
#include "base/files/file.hpp"
#include "base/files/file_io.hpp"
#include "base/files/temp_file.hpp"
#include "base/text/quote.hpp"
#include "format/dataset/dataset_json.hpp"
#include "format/dataset/shard_match.hpp"
#include "format/shard/unconverted.hpp"
#include "remote/s3/remote_file.hpp"
#include "shard/error.hpp"
#include "shard/remote.hpp"

namespace shard {
namespace fs = std::filesystem;

namespace {

constexpr int kReadAttempts = 3;  // of dataset.json on a server, until it matches its digest

// The state of the folder if one of its own files tells it. dataset.json is published before conversion.json
// is removed, so if neither is seen, one after the other, dataset.json is looked up once more.
std::optional<FolderState> stated(const fs::path& folder) {
  for (const char* name : {kDatasetFile, kPlanFile, kDatasetFile})
    if (is_present(folder / name)) return name == kPlanFile ? FolderState::incomplete : FolderState::complete;
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
  const std::vector<std::string> names = names_in(folder);
  if (std::all_of(names.begin(), names.end(), is_temporary_name)) return FolderState::empty;
  // Another process may have started to convert while the folder was listed.
  return stated(folder).value_or(FolderState::foreign);
}

namespace {

UniqueFd open_folder_handle(const fs::path& folder) {
  UniqueFd handle(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!handle) throw_errno("cannot open folder", folder, errno);
  return handle;
}

// Throws unless the folder has a dataset.json.
void require_complete(const fs::path& folder) {
  switch (folder_state(folder)) {
    case FolderState::absent:
      throw Error(ErrorCode::not_found,
                  fmt::format("{} does not exist{}", quoted(folder), missing_advice(folder)));
    case FolderState::incomplete:
      throw Error(
          ErrorCode::not_found,
          fmt::format("{} is an incomplete conversion: run the same shardify command again to finish it "
                      "(a Writer: with resume)",
                      quoted(folder)));
    case FolderState::empty:
    case FolderState::foreign:
      throw Error(
          ErrorCode::not_found,
          fmt::format("{} is not a data set: it has no {}; give the folder that a conversion wrote, or "
                      "convert the images in it first",
                      quoted(folder), kDatasetFile));
    case FolderState::complete:
      break;
  }
}

}  // namespace

DatasetPart::DatasetPart(fs::path path, fs::path folder)
    : path_(std::move(path)), folder_(std::move(folder)) {}

DatasetPart::~DatasetPart() {
  for (const auto& reader : readers_) delete reader.load(std::memory_order_acquire);
}

std::shared_ptr<const DatasetPart> DatasetPart::of_images(fs::path path,
                                                          std::shared_ptr<const UnconvertedSet> images) {
  const std::shared_ptr<DatasetPart> part(new DatasetPart(path, path));
  part->info_ = images->info();
  part->readers_ = std::vector<std::atomic<const ShardReader*>>(part->info_.shards.size());
  part->images_ = std::move(images);
  return part;
}

std::shared_ptr<const DatasetPart> DatasetPart::with_frames() const {
  auto frames = images_ ? images_->with_frames() : nullptr;
  return frames ? of_images(path_, std::move(frames)) : nullptr;
}

std::vector<const HoldingFile*> DatasetPart::holding_files() const {
  return images_ ? images_->holding_files() : std::vector<const HoldingFile*>();
}

fs::path DatasetPart::path_of(const ShardSummary& shard) const {
  if (is_unconverted()) return path_;
  return remote_ ? fs::path(remote_->address_of(shard.file)) : folder_ / shard.file;
}

std::vector<std::byte> DatasetPart::read_document(const std::string& name, std::uint64_t max_bytes) const {
  if (is_unconverted())
    throw Error(ErrorCode::not_found,
                fmt::format("{} is not converted, so it has no {}: convert it first", quoted(path_), name));
  if (!remote_) return read_file(folder_ / name, max_bytes);
  return remote_->client().read_all(*remote_->object(name), max_bytes);
}

DatasetInfo DatasetPart::read_info() const {
  for (int attempt = 1;; ++attempt) {
    try {
      return parse_dataset(as_text(read_document(kDatasetFile, kMaxDatasetBytes)));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::corrupt && error.code() != ErrorCode::unsupported) throw;
      if (remote_ && error.code() == ErrorCode::corrupt && attempt < kReadAttempts)
        continue;  // damaged on the way?
      throw Error(error.code(), fmt::format("{}: {}", quoted(folder_), error.what()));
    }
  }
}

std::shared_ptr<const DatasetPart> DatasetPart::open(const fs::path& path) {
  if (shard::is_remote(path)) {
    const bool shard = path.native().ends_with(".safetensors");
    const std::shared_ptr<DatasetPart> part(
        new DatasetPart(path, shard ? fs::path(split_remote(path.native()).folder) : path));
    if (shard)
      part->open_shard();
    else
      part->open_remote();
    return part;
  }
  std::error_code error;
  const bool file = fs::is_regular_file(path, error);
  const std::shared_ptr<DatasetPart> part(new DatasetPart(path, file ? folder_of(path) : path));
  if (file)
    part->open_shard();
  else
    part->open_folder();
  return part;
}

void DatasetPart::open_shard() {
  if (shard::is_remote(path_))
    remote_ = RemoteFolder::open(folder_.native());
  else
    handle_ = std::make_shared<const UniqueFd>(open_folder_handle(folder_));
  auto reader = std::make_unique<const ShardReader>(handle_ ? ShardReader::open_in(handle_, path_)
                                                            : ShardReader::open(path_));
  const ShardHeader& header = reader->header();
  info_ = DatasetInfo{header};
  info_.inputs = header.samples;
  const std::string file = remote_ ? split_remote(path_.native()).name : path_.filename().string();
  info_.shards = {
      {file, header.samples, reader->file_size_bytes(), header.head_digest, header.largest_of_free()}};
  readers_ = std::vector<std::atomic<const ShardReader*>>(1);
  readers_[0].store(reader.release(), std::memory_order_release);
}

// Shards are not looked up before they are used: there may be thousands, and each needs a request.
void DatasetPart::open_remote() {
  remote_ = RemoteFolder::open(folder_.native());
  try {
    info_ = read_info();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found) throw;
    throw Error(ErrorCode::not_found, fmt::format("{} is not a data set: the server has no {} there",
                                                  quoted(folder_), kDatasetFile));
  }
  readers_ = std::vector<std::atomic<const ShardReader*>>(info_.shards.size());
}

void DatasetPart::open_folder() {
  require_complete(folder_);
  info_ = read_info();
  UniqueFd handle = open_folder_handle(folder_);
  for (const ShardSummary& shard : info_.shards) {
    const fs::path path = folder_ / shard.file;
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
  handle_ = std::make_shared<const UniqueFd>(std::move(handle));
  readers_ = std::vector<std::atomic<const ShardReader*>>(info_.shards.size());
}

// Whether the path now leads to another folder or to none: shardify --overwrite replaces the folder of a data
// set.
bool DatasetPart::was_moved() const noexcept {
  struct stat opened {};
  struct stat there {};
  if (::fstat(handle_->get(), &opened) != 0) return false;
  if (::stat(folder_.c_str(), &there) != 0) return true;
  return opened.st_dev != there.st_dev || opened.st_ino != there.st_ino;
}

const HttpClient* DatasetPart::client() const noexcept { return remote_ ? &remote_->client() : nullptr; }

ShardReader DatasetPart::open_reader(std::uint32_t index) const {
  if (images_) return ShardReader::of_images(path_, images_->shard(index));
  const ShardSummary& shard = info_.shards[index];
  if (as_files_) return open_cached(shard);
  if (remote_) return open_remote(shard);
  try {
    return ShardReader::open_in(handle_, folder_ / shard.file);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found || !was_moved()) throw;
    throw Error(
        ErrorCode::not_found,
        fmt::format("{} was replaced or moved while it was in use, and its shard {} is gone: open the "
                    "data set again",
                    quoted(folder_), quoted(shard.file)));
  }
}

void DatasetPart::check_match(const ShardReader& reader, const ShardSummary& expected) const {
  const auto it = shard_difference(reader, &expected, &info_);
  if (!it) return;
  throw Error(
      ErrorCode::corrupt,
      fmt::format("shard {} does not belong to {}: its {} is {}, {} says {}; restore it or convert again",
                  quoted(reader.path()), quoted(folder_), it->what, it->found, kDatasetFile, it->stated));
}

const ShardReader& DatasetPart::shard(std::uint32_t index) const {
  std::atomic<const ShardReader*>& place = readers_[index];
  if (const ShardReader* const open = place.load(std::memory_order_acquire)) return *open;
  const ShardSummary& expected = info_.shards[index];
  auto reader = std::make_unique<const ShardReader>(open_reader(index));
  if (!is_unconverted()) check_match(*reader, expected);
  const ShardReader* winner = nullptr;
  if (place.compare_exchange_strong(winner, reader.get(), std::memory_order_acq_rel))
    winner = reader.release();
  return *winner;
}

}  // namespace shard
