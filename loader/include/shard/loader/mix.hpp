// Mixup and cutmix over pairs of a batch: row 2i with row 2i + 1.
//
// Zhang et al., "mixup: Beyond Empirical Risk Minimization", 2018; Yun et al., "CutMix", 2019. In both rows
// of a pair the sample keeps the share `share` and gets the rest from the other one:
//
//   mixup    x = x share + other (1 - share)
//   cutmix   a box comes from the other one; share: of the area outside of it
//
// Rows are neighbours in the global batch, and what is drawn depends on (seed, epoch, pair of the epoch)
// only. So it does not depend on the world size, as long as the batch of each rank is even. Pure
// functions, for any thread.
#pragma once

#include <cstdint>

#include "shard/dataset_spec.hpp"
#include "shard/error.hpp"

namespace shard {

struct MixOptions {
  // Parameters of the beta distributions of the share. 0: never.
  double mixup = 0;
  double cutmix = 0;
  // Of a pair being mixed, 0 to 1; and then, if both are above 0, of cutmix.
  double probability = 1;
  double cutmix_probability = 0.5;
  bool enabled() const noexcept { return mixup > 0 || cutmix > 0; }
  bool operator==(const MixOptions&) const = default;
};

// What happens to one pair. The box: columns [left, right) and rows [top, bottom); empty: mixup.
struct MixPair {
  float share = 1;
  std::uint32_t left = 0;
  std::uint32_t top = 0;
  std::uint32_t right = 0;
  std::uint32_t bottom = 0;
  bool operator==(const MixPair&) const = default;
};

// Throws invalid_argument, naming the option and its bounds.
void check_mix(const MixOptions& options);
// pair: its number in the epoch, counted over all ranks.
MixPair draw_mix(const SampleSpec& delivered, const MixOptions& options, std::uint64_t seed,
                 std::uint64_t epoch, std::uint64_t pair) noexcept;

}  // namespace shard
