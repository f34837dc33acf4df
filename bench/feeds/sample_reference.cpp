#include "feeds/sample_reference.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include "base/text/quote.hpp"
#include "shard/error.hpp"

namespace shard::bench {

TransformOptions delivered_transform(const DatasetInfo& info) {
  TransformOptions transform;
  if (info.spec.dtype != DType::u8) return transform;
  transform.dtype = DType::f16;
  transform.layout = Layout::nchw;
  transform.normalization = info.normalization;
  return transform;
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
      stored_(dataset_.info().spec.size_bytes()),
      made_(delivered_.size_bytes()) {}

void SampleReference::check(std::uint64_t sample, std::span<const std::byte> row) {
  const Dataset::Location at = dataset_.locate(sample);
  const ShardReader& shard = dataset_.shard(at.shard);
  shard.verify_sample(at.sample, scratch_);
  shard.images().read(at.sample, stored_);
  std::span<const std::byte> expected = stored_;
  if (!is_identity(dataset_.info().spec, transform_)) {
    transform_rows(*stream_, dataset_.info().spec, transform_, dataset_.info().normalization, stored_.data(),
                   sample, 1, made_.data());
    stream_->synchronize();
    expected = made_;
  }
  if (row.size() != expected.size() || std::memcmp(row.data(), expected.data(), row.size()) != 0)
    throw Error(ErrorCode::corrupt, fmt::format("sample {} is not delivered as the data set has it",
                                                quoted_key(shard.key(at.sample))));
}

std::uint64_t SampleReference::check_batch(Stream& stream, const std::byte* images,
                                           std::span<const std::uint64_t> samples, std::uint64_t most) {
  const std::uint64_t size = delivered_.size_bytes();
  const std::uint64_t count = std::min<std::uint64_t>(samples.size(), most);
  std::vector<std::byte> rows(count * size);
  const CopyItem item{rows.data(), images, rows.size()};
  stream.copy_to_host({&item, 1});
  stream.synchronize();
  for (std::uint64_t i = 0; i < count; ++i) check(samples[i], std::span(rows).subspan(i * size, size));
  return count;
}

}  // namespace shard::bench
