// What every candidate must deliver: the samples of a data set, transformed on the host.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "shard/dataset.hpp"
#include "shard/image/preprocess.hpp"
#include "shard/loader/device.hpp"
#include "shard/loader/transform.hpp"

namespace shard::bench {

// Stored bytes are delivered as normalised float16 planes, and floats as they are stored. Of samples of any
// size, which must be RGB of 8 bits, the short side is resized to 256, and the centre of 224x224 delivered.
inline constexpr std::uint32_t kDeliveredShort = 256;
inline constexpr std::uint32_t kDeliveredSide = 224;
TransformOptions delivered_transform(const DatasetInfo& info);
// Throws unsupported for samples of any size that are not RGB of 8 bits.
void check_deliverable(const Dataset& dataset);

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
  // The same for a row that was made from the sample's image. With a codec that changes pixels it is compared
  // with those of the image, and the stored ones with what the codec makes of them.
  void check_image(std::uint64_t sample, std::span<const std::byte> file, std::span<const std::byte> row);
  // The same for at most `most` rows of a batch on the device of `stream`. Returns how many were checked.
  // `image_of` a row: the file that it was made of; empty: the stored sample.
  std::uint64_t check_batch(Stream& stream, const std::byte* images, std::span<const std::uint64_t> samples,
                            std::uint64_t most = kChecked,
                            const std::function<std::filesystem::path(std::size_t row)>& image_of = {});
  static constexpr std::uint64_t kChecked = 64;

 private:
  // What is delivered of a sample of `spec`.
  std::span<const std::byte> delivered_of(std::uint64_t sample, const SampleSpec& spec,
                                          std::span<const std::byte> bytes);
  [[noreturn]] void refuse(std::uint64_t sample) const;
  SampleSpec read(std::uint64_t sample);  // into stored_

  Dataset dataset_;
  TransformOptions transform_;
  SampleSpec delivered_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::vector<std::byte> stored_, made_, scratch_, converted_;
  image::Decoder decoder_;
  std::optional<image::Preprocessor> preprocessor_;  // of check_image()
};

}  // namespace shard::bench
