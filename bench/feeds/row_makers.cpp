#include "feeds/row_makers.hpp"

#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/core.h>

#include "convert/recorded.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"

namespace shard::bench {

ImageMaker::ImageMaker(const TierImages& images, const DatasetInfo& info, Throttle* throttle)
    : images_(images),
      reader_(images.root),
      preprocessor_(convert::preprocess_options_from(info)),
      decode_(convert::decode_options_from(info)),
      throttle_(throttle) {}

void ImageMaker::make(std::uint64_t index, std::span<std::byte> row) {
  const std::uint64_t image = index % images_.paths.size();
  try {
    const auto file = reader_.read(images_.paths[image]);
    if (throttle_ != nullptr) throttle_->pass(image, 0, file.size());
    preprocessor_.run_file(decoder_, file, decode_, row);
  } catch (const Error& error) {
    throw Error(
        error.code(),
        fmt::format("{}: {}", escape_key((images_.root / images_.paths[image]).string()), error.what()));
  }
}

SampleMaker::SampleMaker(std::shared_ptr<const Dataset> dataset, Throttle& throttle)
    : dataset_(std::move(dataset)), throttle_(throttle) {}

int SampleMaker::descriptor_of(const ShardReader& shard, std::uint32_t index) {
  constexpr std::size_t kOpenFiles = 16;
  const auto found = files_.find(index);
  if (found != files_.end()) return found->second.get();
  UniqueFd file(shard.reopen(0));
  if (!file)
    throw Error(ErrorCode::io, fmt::format("{}: cannot be opened: {}", shard.path().string(),
                                           std::generic_category().message(errno)));
  if (files_.size() >= kOpenFiles) files_.clear();
  return files_.emplace(index, std::move(file)).first->second.get();
}

void SampleMaker::make(std::uint64_t index, std::span<std::byte> row) {
  const Dataset::Location at = dataset_->locate(index % dataset_->size());
  const ShardReader& shard = dataset_->shard(at.shard);
  const auto frame = shard.frame(at.sample);
  const auto offset = static_cast<std::uint64_t>(frame.data() - shard.mapping().data());
  const bool plain = dataset_->info().codec.kind == Codec::Kind::none;
  if (!plain) frame_.resize(frame.size());
  const std::span<std::byte> into = plain ? row : std::span(frame_);
  const int file = descriptor_of(shard, at.shard);
  for (std::size_t got = 0; got < into.size();) {
    const ssize_t part =
        ::pread(file, into.data() + got, into.size() - got, static_cast<off_t>(offset + got));
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0)
      throw Error(ErrorCode::io, fmt::format("{}: cannot read: {}", shard.path().string(),
                                             part == 0 ? std::string("it is shorter than it was")
                                                       : std::generic_category().message(errno)));
    got += static_cast<std::size_t>(part);
  }
  throttle_.pass(at.shard, offset, into.size());
  if (!plain) shard.codec().decode(frame_, row);
}

}  // namespace shard::bench
