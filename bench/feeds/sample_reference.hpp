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

// Stored bytes are delivered as normalised float16 planes, and floats as they are stored.
TransformOptions delivered_transform(const DatasetInfo& info);

// Queues the transform of `rows` samples that lie at `source`, one behind the other, into `target`; row i is
// sample first + i of the order that draws crops and flips.
void transform_rows(Stream& stream, const SampleSpec& stored, const TransformOptions& transform,
                    const Normalization& normalization, const std::byte* source, std::uint64_t first,
                    std::uint64_t rows, std::byte* target);

class SampleReference {  // not thread safe
 public:
  explicit SampleReference(const std::filesystem::path& folder);
  const SampleSpec& delivered() const noexcept { return delivered_; }
  // Throws corrupt, naming the sample, if `row` is not the sample, or if the bytes of the data set do not
  // match their checksum.
  void check(std::uint64_t sample, std::span<const std::byte> row);
  // The same for at most `most` rows of a batch on the device of `stream`. Returns how many were checked.
  std::uint64_t check_batch(Stream& stream, const std::byte* images, std::span<const std::uint64_t> samples,
                            std::uint64_t most = kChecked);
  static constexpr std::uint64_t kChecked = 64;

 private:
  Dataset dataset_;
  TransformOptions transform_;
  SampleSpec delivered_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::vector<std::byte> stored_, made_, scratch_;
};

}  // namespace shard::bench
