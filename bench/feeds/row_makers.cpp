#include "feeds/row_makers.hpp"

#include <cerrno>
#include <utility>

#include <fmt/core.h>

#include "base/files/file.hpp"
#include "base/files/file_io.hpp"
#include "base/text/quote.hpp"
#include "shard/convert/recorded.hpp"
#include "shard/error.hpp"

namespace shard::bench {

ImageMaker::ImageMaker(const std::filesystem::path& root, const std::vector<std::string>& paths,
                       const image::PreprocessOptions& preprocess, const image::DecodeOptions& decode,
                       Throttle* throttle)
    : root_(root), paths_(paths), preprocessor_(preprocess), decode_(decode), throttle_(throttle) {}

ImageMaker::ImageMaker(const TierImages& images, const DatasetInfo& info, Throttle* throttle)
    : ImageMaker(images.root, images.paths, convert::preprocess_options_from(info),
                 convert::decode_options_from(info), throttle) {}

void ImageMaker::make(std::uint64_t index, std::span<std::byte> row) {
  const std::uint64_t image = index % paths_.size();
  read_file_into(root_ / paths_[image], kMaxImageBytes, file_);
  if (throttle_ != nullptr) throttle_->pass(image, 0, file_.size());
  try {
    preprocessor_.run_file(decoder_, file_, decode_, row);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", quoted(root_ / paths_[image]), error.what()));
  }
}

SampleMaker::SampleMaker(Dataset dataset, Throttle& throttle)
    : dataset_(std::move(dataset)), throttle_(throttle) {}

int SampleMaker::descriptor_of(const ShardReader& shard, std::uint32_t index) {
  constexpr std::size_t kOpenFiles = 16;
  const auto found = files_.find(index);
  if (found != files_.end()) return found->second.get();
  UniqueFd file(shard.reopen(0));
  if (!file) throw_errno("cannot open", shard.path(), errno);
  if (files_.size() >= kOpenFiles) files_.clear();
  return files_.emplace(index, std::move(file)).first->second.get();
}

void SampleMaker::make(std::uint64_t index, std::span<std::byte> row) {
  const Dataset::Location at = dataset_.locate(index % dataset_.size());
  const ShardReader& shard = dataset_.shard(at.shard);
  const StoredImages& images = shard.images();
  const auto frame = images.frame(at.sample);
  const auto offset = static_cast<std::uint64_t>(frame.data() - shard.mapping().data());
  if (images.framed()) frame_.resize(frame.size());
  const std::span<std::byte> into = images.framed() ? std::span(frame_) : row;
  pread_all(descriptor_of(shard, at.shard), into, offset, shard.path());
  throttle_.pass(at.shard, offset, into.size());
  if (images.framed()) images.codec().decode(frame_, row, images.frame_spec(at.sample));
}

}  // namespace shard::bench
