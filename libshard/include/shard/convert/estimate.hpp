// The plan of a conversion without doing it: what would be written, and how long it would take.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "shard/convert/convert.hpp"

namespace shard::convert {

struct Estimate {
  std::uint64_t listed = 0;
  std::uint64_t inputs = 0;
  // Escaped names; empty if there are no classes.
  std::vector<std::string> classes;
  // Inputs of each class.
  std::vector<std::uint64_t> class_counts;
  // Those that are known from the listing and the labels.
  std::vector<Reject> rejects;
  std::uint64_t shards = 0;
  std::uint64_t per_shard = 0;
  // Of all image fields of a sample. Of samples of any size: the mean of the sampled images.
  std::uint64_t sample_bytes = 0;
  // Values of the main image of a sample, on average over the sampled images.
  double mean_values = 0;
  // Bytes of samples, before the codec.
  std::uint64_t out_bytes = 0;
  // Images that were decoded for this estimate, evenly spaced.
  std::uint64_t sampled = 0;
  std::uint64_t sampled_rejects = 0;
  // Images whose sizes were looked at, and those of them that would be enlarged
  // (Listing::warnings says so too).
  std::uint64_t sized = 0;
  std::uint64_t smaller = 0;
  // The first few of them.
  std::vector<Reject> sampled_reject_list;
  // Of the others.
  image::WarningCounts sampled_warnings;
  // On one thread.
  double seconds_per_image = 0;
  // For all inputs, on options.threads() threads.
  double seconds = 0;
  std::uint64_t mean_input_bytes = 0;
  // Bytes of frames / bytes of samples before the codec, of the sampled images.
  double compressed_ratio = 1;
  // Of a sample with codec packed, even if another codec is asked for.
  std::uint64_t mean_packed_bytes = 0;
  // On the file system of `out`.
  std::optional<std::uint64_t> free_bytes;
};

// Decodes up to 64 images, for at most about 2 seconds. Writes nothing. Errors as run().
Estimate estimate(const Options& options, const Hooks& hooks = {});

}  // namespace shard::convert
