#include "feeds/row_makers.hpp"

#include <cerrno>
#include <utility>

#include <fmt/core.h>

#include "base/files/file.hpp"
#include "base/files/file_io.hpp"
#include "base/text/quote.hpp"
#include "feeds/sample_reference.hpp"
#include "shard/convert/recorded.hpp"
#include "shard/error.hpp"

namespace shard::bench {

image::PreprocessOptions made_preprocess(const DatasetInfo& info) {
  if (!info.spec.is_free()) return convert::preprocess_options_from(info);
  image::PreprocessOptions options;
  options.resize_short = kDeliveredShort;
  options.crop = image::Size{kDeliveredSide, kDeliveredSide};
  options.dtype = DType::u8;
  options.layout = Layout::nhwc;
  return options;
}

TransformOptions made_transform(const DatasetInfo& info) {
  TransformOptions transform = delivered_transform(info);
  if (!info.spec.is_free()) return transform;
  transform.resize = ResizeKind::none;
  transform.resize_height = transform.resize_width = 0;
  transform.crop = CropKind::none;
  transform.crop_height = transform.crop_width = 0;
  return transform;
}

ImageMaker::ImageMaker(const std::filesystem::path& root, const std::vector<std::string>& paths,
                       const image::PreprocessOptions& preprocess, const image::DecodeOptions& decode,
                       Throttle* throttle)
    : root_(root), paths_(paths), preprocessor_(preprocess), decode_(decode), throttle_(throttle) {}

ImageMaker::ImageMaker(const TierImages& images, const DatasetInfo& info, Throttle* throttle)
    : ImageMaker(images.root, images.paths, made_preprocess(info), convert::decode_options_from(info),
                 throttle) {}

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
    : dataset_(std::move(dataset)), throttle_(throttle) {
  if (dataset_.info().spec.is_free()) preprocessor_.emplace(made_preprocess(dataset_.info()));
}

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
  if (!images.framed()) return;
  const FrameSpec spec = images.frame_spec(at.sample);
  if (!preprocessor_) return images.codec().decode(frame_, row, spec);
  pixels_.resize(spec.sample.size_bytes());
  images.codec().decode(frame_, pixels_, spec);
  preprocessor_->run(image::RgbView{reinterpret_cast<const std::uint8_t*>(pixels_.data()), spec.sample.width,
                                    spec.sample.height, std::size_t{3} * spec.sample.width},
                     row);
}

}  // namespace shard::bench
