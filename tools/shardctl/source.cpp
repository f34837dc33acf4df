#include "shardctl/source.hpp"

#include <fmt/format.h>

#include <system_error>

#include "base/checksum.hpp"
#include "base/quote.hpp"
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
      throw Error(ErrorCode::not_found, fmt::format("{}: no such file or folder", quoted(folder)));
    case FolderState::empty:
      throw Error(
          ErrorCode::not_found,
          fmt::format("{}: an empty folder; make a data set with: shardify IMAGES OUT", quoted(folder)));
    case FolderState::foreign:
      break;
  }
  throw Error(ErrorCode::not_found,
              fmt::format("{}: not a data set (no {}); give the folder that shardify wrote, or a "
                          ".safetensors file",
                          quoted(folder), kDatasetFile));
}

Source Source::open(const std::string& path, Check check) {
  Source source;
  source.check_ = check;
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status) || !std::filesystem::exists(status)) {
    require_dataset_folder(path);
    source.dataset_ = Dataset::open(path);
    source.head_checked_ = std::make_unique<std::once_flag[]>(source.shards());
    return source;
  }
  if (!std::filesystem::is_regular_file(status)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: not a regular file", quoted(path)));
  }
  source.reader_ = ShardReader::open(path);
  source.head_checked_ = std::make_unique<std::once_flag[]>(1);
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

const ShardReader& Source::shard(std::uint32_t index) const {
  const ShardReader& reader = dataset_ ? dataset_->shard(index) : *reader_;
  if (check_ == Check::digests) {
    std::call_once(head_checked_[index], [&] { reader.verify_head(); });  // stays unset when it throws
  }
  return reader;
}

Source::Sample Source::locate(std::uint64_t index) const {
  if (index >= size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("sample {} does not exist: there are {}, numbered from 0", index, size()));
  }
  if (!dataset_) return {shard(0), index};
  const Dataset::Location location = dataset_->locate(index);
  return {shard(location.shard), location.sample};
}

void Source::read(std::uint64_t index, std::span<std::byte> out) const {
  const Sample sample = locate(index);
  sample.reader.read(sample.index, out);
  if (check_ == Check::none) return;
  const std::uint64_t expected = sample.reader.checksum(sample.index);
  const std::uint64_t found = xxh3(out);
  if (found != expected) {
    throw Error(
        ErrorCode::corrupt,
        fmt::format("shard {}: sample {} ({}): its bytes have the checksum {:016x}, the shard says {:016x}",
                    quoted(sample.reader.path()), sample.index, quoted_key(sample.reader.key(sample.index)),
                    found, expected));
  }
}

}  // namespace shard::ctl
