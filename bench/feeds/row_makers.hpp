// Rows of a data set's samples made on the fly: decoded from their images, or read sample by sample; held
// back where the storage is emulated.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/unique_handle.hpp"
#include "convert/input_file.hpp"
#include "feeds/batch_pipeline.hpp"
#include "feeds/tier_data.hpp"
#include "harness/throttle.hpp"
#include "shard/dataset.hpp"
#include "shard/image/preprocess.hpp"

namespace shard::bench {

// An image file, read from the tier (held back where that is emulated), to a row.
class ImageMaker final : public RowMaker {
 public:
  // Row i is root / paths[i], again from the first one on after the last. `throttle`: none where null. `paths`
  // must outlive it.
  ImageMaker(const std::filesystem::path& root, const std::vector<std::string>& paths,
             const image::PreprocessOptions& preprocess, const image::DecodeOptions& decode,
             Throttle* throttle = nullptr);
  // As the data set was made.
  ImageMaker(const TierImages& images, const DatasetInfo& info, Throttle* throttle);
  void make(std::uint64_t index, std::span<std::byte> row) override;

 private:
  std::filesystem::path root_;
  const std::vector<std::string>& paths_;
  convert::InputReader reader_;
  image::Decoder decoder_;
  image::Preprocessor preprocessor_;
  image::DecodeOptions decode_;
  Throttle* throttle_;
};

// A stored sample, read with a call of its own and held back, to a row.
class SampleMaker final : public RowMaker {
 public:
  SampleMaker(Dataset dataset, Throttle& throttle);
  void make(std::uint64_t index, std::span<std::byte> row) override;

 private:
  int descriptor_of(const ShardReader& shard, std::uint32_t index);

  Dataset dataset_;
  Throttle& throttle_;
  std::unordered_map<std::uint32_t, UniqueFd> files_;  // by shard; a few
  std::vector<std::byte> frame_;
};

}  // namespace shard::bench
