#include "feeds/sample_reference.hpp"

#include <cstring>

#include <fmt/core.h>

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
  shard.read(at.sample, stored_);
  std::span<const std::byte> expected = stored_;
  if (!is_identity(dataset_.info().spec, transform_)) {
    const std::byte* const source = stored_.data();
    const SampleView view = draw_view(dataset_.info().spec, transform_, 0, 0, sample);
    TransformWork work;
    work.stored = dataset_.info().spec;
    work.delivered = delivered_;
    work.normalization = dataset_.info().normalization;
    work.normalize = true;
    work.sources = {&source, 1};
    work.views = {&view, 1};
    work.target = made_.data();
    stream_->transform(work);
    stream_->synchronize();
    expected = made_;
  }
  if (row.size() != expected.size() || std::memcmp(row.data(), expected.data(), row.size()) != 0)
    throw Error(ErrorCode::corrupt,
                fmt::format("sample '{}' is not delivered as the data set has it", shard.key(at.sample)));
}

}  // namespace shard::bench
