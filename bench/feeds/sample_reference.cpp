#include "feeds/sample_reference.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "base/files/file.hpp"
#include "base/text/quote.hpp"
#include "feeds/tier_data.hpp"
#include "shard/codec.hpp"
#include "shard/convert/recorded.hpp"
#include "shard/error.hpp"

namespace shard::bench {

TransformOptions delivered_transform(const DatasetInfo& info) {
  TransformOptions transform;
  if (info.spec.is_free()) {
    transform.resize = ResizeKind::shortest;
    transform.resize_height = transform.resize_width = kDeliveredShort;
    transform.crop = CropKind::center;
    transform.crop_height = transform.crop_width = kDeliveredSide;
  }
  if (info.spec.dtype != DType::u8) return transform;
  transform.dtype = DType::f16;
  transform.layout = Layout::nchw;
  transform.normalization = info.normalization;
  return transform;
}

void check_deliverable(const Dataset& dataset) {
  const SampleSpec& spec = dataset.info().spec;
  if (!spec.is_free() || (spec.dtype == DType::u8 && spec.channels == 3)) return;
  throw Error(
      ErrorCode::unsupported,
      fmt::format("{}: its samples are of any size, with {} channels of {}; of any size only RGB of u8 "
                  "is measured: take a data set of one size",
                  quoted(dataset.folder()), spec.channels, to_string(spec.dtype)));
}

void transform_rows(Stream& stream, const SampleSpec& stored, const TransformOptions& transform,
                    const Normalization& normalization, const std::byte* source, std::uint64_t first,
                    std::uint64_t rows, std::byte* target) {
  std::vector<const std::byte*> sources;
  std::vector<SampleCrop> crops;
  for (std::uint64_t i = 0; i < rows; ++i) {
    sources.push_back(source + i * stored.size_bytes());
    crops.push_back(draw_crop(stored, transform, 0, 0, first + i));
  }
  TransformWork work;
  work.stored = stored;
  work.delivered = check_transform(stored, transform);
  work.normalization = normalization;
  work.normalize = stored.dtype == DType::u8 && work.delivered.dtype != DType::u8;
  work.sources = sources;
  work.crops = crops;
  work.target = target;
  stream.transform(work);
}

SampleReference::SampleReference(const std::filesystem::path& folder)
    : dataset_(Dataset::open(folder)),
      transform_(delivered_transform(dataset_.info())),
      delivered_(check_transform(dataset_.info().spec, transform_)),
      device_(make_host_device(1)),
      stream_(device_->create_stream()),
      made_(delivered_.size_bytes()) {}

void SampleReference::refuse(std::uint64_t sample) const {
  const Dataset::Location at = dataset_.locate(sample);
  throw Error(ErrorCode::corrupt, fmt::format("sample {} is not delivered as the data set has it",
                                              quoted_key(dataset_.shard(at.shard).key(at.sample))));
}

SampleSpec SampleReference::read(std::uint64_t sample) {
  const Dataset::Location at = dataset_.locate(sample);
  const ShardReader& shard = dataset_.shard(at.shard);
  shard.verify_sample(at.sample, scratch_);
  const SampleSpec spec = shard.images().spec_of(at.sample);
  stored_.resize(spec.size_bytes());
  shard.images().read(at.sample, stored_);
  return spec;
}

std::span<const std::byte> SampleReference::delivered_of(std::uint64_t sample, const SampleSpec& spec,
                                                         std::span<const std::byte> bytes) {
  const DatasetInfo& info = dataset_.info();
  if (is_identity(info.spec, transform_)) return bytes;
  const std::byte* const source = bytes.data();
  const SampleCrop crop = draw_crop(spec, transform_, 0, 0, sample);
  const SampleSize size{spec.height, spec.width};
  TransformWork work;
  work.stored = info.spec;
  work.delivered = delivered_;
  work.normalization = info.normalization;
  work.normalize = info.spec.dtype == DType::u8 && delivered_.dtype != DType::u8;
  work.sources = {&source, 1};
  work.crops = {&crop, 1};
  if (info.spec.is_free()) {
    work.sizes = {&size, 1};
    work.exact = true;
    work.filter = transform_.filter;
  }
  work.target = made_.data();
  stream_->transform(work);
  stream_->synchronize();
  return made_;
}

void SampleReference::check(std::uint64_t sample, std::span<const std::byte> row) {
  const SampleSpec spec = read(sample);
  if (!std::ranges::equal(row, delivered_of(sample, spec, stored_))) refuse(sample);
}

void SampleReference::check_image(std::uint64_t sample, std::span<const std::byte> file,
                                  std::span<const std::byte> row) {
  const DatasetInfo& info = dataset_.info();
  if (!preprocessor_) preprocessor_.emplace(convert::preprocess_options_from(info));
  preprocessor_->run_file(decoder_, file, convert::decode_options_from(info), converted_);
  FrameSpec frame(preprocessor_->made());
  if (read(sample) != frame.sample) refuse(sample);
  if (!std::ranges::equal(row, delivered_of(sample, frame.sample, converted_))) refuse(sample);
  if (std::ranges::equal(stored_, converted_)) return;
  const Codec codec(info.codec, info.spec, info.normalization);
  if (!codec.lossy()) refuse(sample);
  codec.decode(codec.encode(converted_, frame), converted_, frame);
  if (!std::ranges::equal(stored_, converted_)) refuse(sample);
}

std::uint64_t SampleReference::check_batch(
    Stream& stream, const std::byte* images, std::span<const std::uint64_t> samples, std::uint64_t most,
    const std::function<std::filesystem::path(std::size_t row)>& image_of) {
  const std::uint64_t size = delivered_.size_bytes();
  const std::uint64_t count = std::min<std::uint64_t>(samples.size(), most);
  std::vector<std::byte> rows(count * size);
  const CopyItem item{rows.data(), images, rows.size()};
  stream.copy_to_host({&item, 1});
  stream.synchronize();
  std::vector<std::byte> file;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto row = std::span(rows).subspan(i * size, size);
    const std::filesystem::path image = image_of ? image_of(i) : std::filesystem::path();
    if (image.empty()) {
      check(samples[i], row);
      continue;
    }
    read_file_into(image, kMaxImageBytes, file);
    check_image(samples[i], file, row);
  }
  return count;
}

}  // namespace shard::bench
