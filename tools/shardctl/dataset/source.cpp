#include "shardctl/dataset/source.hpp"

#include <fmt/format.h>

#include <system_error>

#include "base/digest/checksum.hpp"
#include "base/files/file_io.hpp"
#include "base/system/parallel.hpp"
#include "base/text/quote.hpp"
#include "cli/text.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"
#include "shard/remote.hpp"

namespace shard::ctl {
namespace {

constexpr unsigned kRequests = 16;  // for heads of shards on a server

}  // namespace

std::string path_text(const std::filesystem::path& path) { return escape_key(path.string()); }

FolderState require_dataset_folder(const std::filesystem::path& folder) {
  if (is_remote(folder)) return FolderState::complete;  // whether it is, Dataset::open() finds out
  const FolderState state = folder_state(folder);
  switch (state) {
    case FolderState::complete:
    case FolderState::incomplete:
      return state;
    case FolderState::absent:
      throw Error(ErrorCode::not_found,
                  fmt::format("{}: no such file or folder{}", quoted(folder), missing_advice(folder)));
    case FolderState::empty:
      throw Error(
          ErrorCode::not_found,
          fmt::format("{}: an empty folder; make a data set with: shardify IMAGES OUT", quoted(folder)));
    case FolderState::foreign:
      break;
  }
  throw Error(ErrorCode::not_found,
              fmt::format("{}: not a data set (no {}); give the folder that shardify wrote, or a "
                          ".safetensors file; if it holds images, make a data set with: shardify {} OUT",
                          quoted(folder), kDatasetFile, cli::shell_word(folder.string())));
}

Source Source::open(const std::string& path, Check check) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status) || !std::filesystem::exists(status)) {
    require_dataset_folder(parse_dataset_path(path).folder);
  } else if (!std::filesystem::is_regular_file(status)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: not a regular file", quoted(path)));
  }
  return Source(Dataset::open(path), check);
}

Source::Source(Dataset data, Check check)
    : data_(std::move(data)), check_(check), head_checked_(std::make_unique<std::once_flag[]>(shards())) {
  std::uint64_t first = 0;
  for (const ShardSummary& of : info().shards) {
    first_.push_back(first);
    first += of.samples;
  }
}

void Source::open_shards() const {
  if (!is_remote(data_.folder())) return;
  parallel_for(kRequests, shards(), [&](unsigned, std::uint64_t i) {
    try {
      data_.shard(static_cast<std::uint32_t>(i));
    } catch (const Error&) {  // is thrown again where the shard is used
    }
  });
}

std::uint32_t Source::shards() const noexcept { return static_cast<std::uint32_t>(info().shards.size()); }

const ShardReader& Source::shard(std::uint32_t index) const {
  const ShardReader& reader = data_.shard(index);
  if (check_ == Check::digests) {
    std::call_once(head_checked_[index], [&] { reader.verify_head(); });  // stays unset when it throws
  }
  return reader;
}

Source::Sample Source::locate(std::uint64_t index) const {
  const Dataset::Location location = data_.locate(index);
  return {shard(location.shard), location.sample};
}

void Source::read(std::uint64_t index, std::span<std::byte> out, std::optional<std::size_t> field) const {
  const Sample sample = locate(index);
  const StoredImages& images = sample.reader.images(field);
  images.read(sample.index, out);
  if (check_ == Check::none) return;
  if (!images.has_checksum(sample.index)) {
    std::vector<std::byte> frame;
    images.read_frame(sample.index, frame);
    if (xxh3(frame) == images.frame_checksum(sample.index)) return;
    throw Error(
        ErrorCode::corrupt,
        fmt::format("shard {}: sample {} ({}): its frame does not have its checksum",
                    quoted(sample.reader.path()), sample.index, quoted_key(sample.reader.key(sample.index))));
  }
  const std::uint64_t expected = images.checksum(sample.index);
  const std::uint64_t found = xxh3(out);
  if (found == expected) return;
  throw Error(
      ErrorCode::corrupt,
      fmt::format("shard {}: sample {} ({}): {} the checksum {:016x}, the shard says {:016x}",
                  quoted(sample.reader.path()), sample.index, quoted_key(sample.reader.key(sample.index)),
                  field ? fmt::format("its {} has", images.name()) : "its bytes have", found, expected));
}

SampleSpec Source::spec_of(std::uint64_t index, std::optional<std::size_t> field) const {
  const Sample sample = locate(index);
  return sample.reader.images(field).spec_of(sample.index);
}

SampleSpec Source::read(std::uint64_t index, std::vector<std::byte>& out,
                        std::optional<std::size_t> field) const {
  const SampleSpec of = spec_of(index, field);
  out.resize(static_cast<std::size_t>(of.size_bytes()));
  read(index, std::span<std::byte>(out), field);
  return of;
}

}  // namespace shard::ctl
