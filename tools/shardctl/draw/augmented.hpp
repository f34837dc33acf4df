// What the loader's transform makes of samples, for people to look at: the pixels that training gets.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shard/dataset.hpp"
#include "shard/error.hpp"
#include "shard/loader/augment.hpp"
#include "shard/loader/transform.hpp"
#include "shardctl/dataset/source.hpp"
#include "shardctl/draw/overlay.hpp"

namespace shard::ctl {

// "rand-augment" or "rand-augment:COUNT,MAGNITUDE", "trivial-augment", "auto-augment" or
// "auto-augment:POLICY", "aug-mix", "3-augment", "simclr" (colour jitter, grayscale, blur), "crop"
// (no operation), each after a random-resized-crop and a flip. Throws invalid_argument, naming
// those that there are.
std::vector<Operation> parse_policy(const std::string& policy);
inline constexpr const char* kPolicyNames =
    "rand-augment[:COUNT,MAGNITUDE], trivial-augment, auto-augment[:imagenet|cifar10|svhn], aug-mix, "
    "3-augment, simclr, crop";

// Const members may be called from several threads at once.
class Augmented {
 public:
  // Delivers u8 RGB of the stored rows and columns. policy: of parse_policy(), or an operation of
  // visible_operation(), which is then alone, without crop and flip. Errors: those of parse_policy();
  // unsupported (samples that are no images of 1 or 3 channels, samples of any size, or floats without codec
  // packed).
  Augmented(const DatasetInfo& info, const std::string& policy, std::uint64_t seed);

  // u8 [row, column, 3] of a sample in an epoch: what a Loader of the source with this seed delivers.
  // Errors: those of Source::locate(); corrupt.
  std::vector<std::uint8_t> picture(const Source& source, std::uint64_t index, std::uint64_t epoch) const;
  // Its targets, moved as its pixels are: masks by nearest, and boxes without those that are smaller than a
  // pixel, as a loader delivers them by default. Errors: those of Overlay::read().
  SampleTargets targets(const Overlay& overlay, const Source& source, std::uint64_t index,
                        std::uint64_t epoch) const;

 private:
  TransformOptions options_;
  TransformWork plan_;
  std::uint64_t seed_;
};

}  // namespace shard::ctl
