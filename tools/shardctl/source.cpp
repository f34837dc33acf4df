#include "shardctl/source.hpp"

#include <fmt/format.h>

#include <system_error>

#include "shard/error.hpp"
#include "shard/keys.hpp"

namespace shard::ctl {

std::string path_text(const std::filesystem::path& path) { return escape_key(path.string()); }

FolderState require_dataset_folder(const std::filesystem::path& folder) {
  const FolderState state = folder_state(folder);
  switch (state) {
    case FolderState::complete:
    case FolderState::incomplete:
      return state;
    case FolderState::absent:
      throw Error(ErrorCode::not_found, fmt::format("{}: no such file or folder", path_text(folder)));
    case FolderState::empty:
      throw Error(
          ErrorCode::not_found,
          fmt::format("{}: an empty folder; make a data set with: shardify IMAGES OUT", path_text(folder)));
    case FolderState::foreign:
      break;
  }
  throw Error(ErrorCode::not_found,
              fmt::format("{}: not a data set (no {}); give the folder that shardify wrote, or a "
                          ".safetensors file",
                          path_text(folder), kDatasetFile));
}

Source Source::open(const std::string& path) {
  Source source;
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status) || !std::filesystem::exists(status)) {
    require_dataset_folder(path);
    source.dataset_ = Dataset::open(path);
    return source;
  }
  if (!std::filesystem::is_regular_file(status)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: not a regular file", path_text(path)));
  }
  source.reader_ = ShardReader::open(path);
  const ShardHeader& header = source.reader_->header();
  DatasetInfo& info = source.shard_info_;
  info.spec = header.spec;
  info.normalization = header.normalization;
  info.pipeline = header.pipeline;
  info.codec = header.codec;
  info.fingerprint = header.fingerprint;
  info.columns.clear();
  for (const auto& [name, column] : source.reader_->columns()) {
    info.columns.push_back({name, column.dtype, column.row_shape});
  }
  info.inputs = header.samples;
  info.shards.push_back({source.reader_->path().filename().string(), header.samples,
                         source.reader_->file_size_bytes(), header.head_digest});
  return source;
}

std::uint32_t Source::shards() const noexcept { return static_cast<std::uint32_t>(info().shards.size()); }

Source::Sample Source::locate(std::uint64_t index) const {
  if (index >= size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("sample {} does not exist: there are {}, numbered from 0", index, size()));
  }
  if (!dataset_) return {*reader_, index};
  const Dataset::Location location = dataset_->locate(index);
  return {dataset_->shard(location.shard), location.sample};
}

void Source::read(std::uint64_t index, std::span<std::byte> out) const {
  const Sample sample = locate(index);
  sample.reader.read(sample.index, out);
}

}  // namespace shard::ctl
