// SourceImages: the samples of a plan that is not converted, by the number of their input.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "convert/plan/plan.hpp"
#include "format/shard/unconverted.hpp"
#include "shard/convert/convert.hpp"

namespace shard::convert {

// Thread safe, also in a child after fork().
class SourceImages {
 public:
  // `options` are those of the plan. Reads the headers of all images if their samples are of any size, and
  // decodes those whose header does not tell; those that cannot be used count as 1 x 1, and are errors when
  // they are made. Errors: cancelled, those that end a conversion.
  SourceImages(Plan plan, const Options& options, const Hooks& hooks);
  SourceImages(const SourceImages&) = delete;
  SourceImages& operator=(const SourceImages&) = delete;
  ~SourceImages();

  const Plan& plan() const noexcept { return plan_; }
  // What all samples have: those of the conversion, with codec none.
  const DatasetSpec& spec() const noexcept { return spec_; }
  // Image 0 or a further one of an input.
  SampleSpec spec_of(std::size_t image, std::uint64_t input) const;
  // Of inputs [first, first + count), for the images whose samples are of any size; {} of the others.
  std::vector<LargestSample> largest(std::uint64_t first, std::uint64_t count) const;
  // See UnconvertedSamples.
  std::shared_ptr<const MadeSample> make(std::uint64_t input) const;

 private:
  // What threads share. A forked child makes its own: another thread may have held the lock.
  struct Shared;

  Shared& shared() const;
  void find_sizes(const Hooks& hooks);
  std::shared_ptr<const MadeSample> read(std::uint64_t input) const;
  // Of samples of any size: throws invalid_argument if it is not the one that was listed.
  void check_size(std::uint64_t input, const MadeSample& made) const;

  Plan plan_;
  Options options_;
  DatasetSpec spec_;
  std::vector<image::Size> sizes_;  // of samples of any size
  mutable std::atomic<Shared*> shared_;
};

}  // namespace shard::convert
