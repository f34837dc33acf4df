// What every candidate must deliver: the samples of a data set, transformed on the host.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "shard/dataset.hpp"
#include "shard/loader/device.hpp"
#include "shard/loader/transform.hpp"

namespace shard::bench {

// Normalised float16 planes of stored bytes; floats are delivered as they are stored.
TransformOptions delivered_transform(const DatasetInfo& info);

class SampleReference {  // not thread safe
 public:
  explicit SampleReference(const std::filesystem::path& folder);
  const SampleSpec& delivered() const noexcept { return delivered_; }
  // Throws corrupt, naming the sample: `row` is not what it is, or the data set's bytes fail their checksum.
  void check(std::uint64_t sample, std::span<const std::byte> row);

 private:
  Dataset dataset_;
  TransformOptions transform_;
  SampleSpec delivered_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::vector<std::byte> stored_, made_, scratch_;
};

}  // namespace shard::bench
