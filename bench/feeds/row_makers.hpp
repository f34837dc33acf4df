// Makes samples of a data set on the fly: decodes their images, or reads sample by sample. If the storage is
// emulated, reads are delayed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/unique_handle.hpp"
#include "feeds/batch_pipeline.hpp"
#include "feeds/tier_data.hpp"
#include "harness/throttle.hpp"
#include "shard/dataset.hpp"
#include "shard/image/preprocess.hpp"

namespace shard::bench {

// How a row is made on this machine, before the device's transform: as the data set stores it or, of samples
// of any size, already with the size that is delivered.
image::PreprocessOptions made_preprocess(const DatasetInfo& info);
// What the device makes of such a row: delivered_transform(), without what is done already.
TransformOptions made_transform(const DatasetInfo& info);

// Decodes an image file of the tier to a row.
class ImageMaker final : public RowMaker {
 public:
  // Row i is root / paths[i]; after the last path the first one follows. `throttle`: null if reads are not
  // delayed. `paths` must outlive the object.
  ImageMaker(const std::filesystem::path& root, const std::vector<std::string>& paths,
             const image::PreprocessOptions& preprocess, const image::DecodeOptions& decode,
             Throttle* throttle = nullptr);
  // By made_preprocess().
  ImageMaker(const TierImages& images, const DatasetInfo& info, Throttle* throttle);
  void make(std::uint64_t index, std::span<std::byte> row) override;

 private:
  std::filesystem::path root_;
  const std::vector<std::string>& paths_;
  std::vector<std::byte> file_;
  image::Decoder decoder_;
  image::Preprocessor preprocessor_;
  image::DecodeOptions decode_;
  Throttle* throttle_;
};

// Reads a stored sample by one delayed call, and decodes it to a row of made_preprocess().
class SampleMaker final : public RowMaker {
 public:
  SampleMaker(Dataset dataset, Throttle& throttle);
  void make(std::uint64_t index, std::span<std::byte> row) override;

 private:
  int descriptor_of(const ShardReader& shard, std::uint32_t index);

  Dataset dataset_;
  Throttle& throttle_;
  std::unordered_map<std::uint32_t, UniqueFd> files_;  // by shard; a few
  std::vector<std::byte> frame_, pixels_;
  std::optional<image::Preprocessor> preprocessor_;  // of samples of any size
};

}  // namespace shard::bench
