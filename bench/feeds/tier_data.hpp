// Data sets and their images on one tier: where they already are, or copied there until the object is
// destroyed.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/temp_folder.hpp"
#include "shard/dataset.hpp"

namespace shard::bench {

inline constexpr std::uint64_t kMaxImageBytes = std::uint64_t{1} << 30U;  // of a file, as in a conversion

// Which images of a data set take part: row i of a run is sample `samples[i]` and the file root / paths[i].
struct TierImages {
  std::filesystem::path root;
  std::vector<std::string> paths;
  std::vector<std::uint64_t> samples;
  std::uint64_t bytes = 0;
  std::string problem;  // why there are none; empty: there are
  double mean_bytes() const noexcept {
    return paths.empty() ? 0 : static_cast<double>(bytes) / static_cast<double>(paths.size());
  }
};

// `count` images of the data set, evenly distributed; 0: all. Errors: not_found, naming the first missing
// image.
TierImages match_images(const Dataset& dataset, const std::filesystem::path& images, std::uint64_t count);

std::uint64_t shard_bytes(const DatasetInfo& info);  // of all shard files

struct TierPlace {
  std::string name;
  std::filesystem::path folder;  // empty: where the data lie
};
TierPlace parse_tier(const std::string& text);  // "NAME=PATH"; throws invalid_argument

class TierData {
 public:
  // Copies into a new folder below place.folder. Errors: not_found, io, resource (no room), cancelled.
  TierData(const TierPlace& place, const std::vector<std::filesystem::path>& datasets,
           const TierImages& images, const std::atomic<bool>& cancel,
           const std::function<void(const std::string&)>& note);
  const std::filesystem::path& folder() const noexcept { return folder_; }
  const std::vector<std::filesystem::path>& datasets() const noexcept { return datasets_; }
  const TierImages& images() const noexcept { return images_; }
  std::vector<std::filesystem::path> shard_files(std::size_t dataset) const;
  std::vector<std::filesystem::path> image_files() const;
  // Why decoding is not measured here: there are no images, or they are on another filesystem. Empty: it is
  // measured.
  const std::string& no_images() const noexcept { return images_.problem; }
  bool memory() const noexcept { return memory_; }

 private:
  void copy(const std::atomic<bool>& cancel, const std::function<void(const std::string&)>& note);
  std::optional<TempFolder> temp_;
  std::filesystem::path folder_;
  std::vector<std::filesystem::path> datasets_;
  TierImages images_;
  bool memory_ = false;
};

}  // namespace shard::bench
