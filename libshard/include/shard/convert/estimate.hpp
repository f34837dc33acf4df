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
  std::vector<std::string> classes;         // escaped; empty: no classes
  std::vector<std::uint64_t> class_counts;  // inputs of each
  std::vector<Reject> rejects;              // known from listing and labels
  std::uint64_t shards = 0;
  std::uint64_t per_shard = 0;
  std::uint64_t sample_bytes = 0;
  std::uint64_t out_bytes = 0;  // of samples, before the codec
  std::uint64_t sampled = 0;    // images decoded for this estimate, evenly spaced
  std::uint64_t sampled_rejects = 0;
  std::vector<Reject> sampled_reject_list;  // the first few
  double seconds_per_image = 0;             // one thread
  double seconds = 0;                       // all inputs, options.threads() threads
  std::uint64_t mean_input_bytes = 0;
  double compressed_ratio = 1;              // frames / samples before the codec, of the sampled images
  std::uint64_t mean_packed_bytes = 0;      // of a sample with codec packed, whatever codec is asked for
  std::optional<std::uint64_t> free_bytes;  // where OUT would be
};

// Decodes up to 64 images, for at most about 2 seconds. Writes nothing. Errors as run().
Estimate estimate(const Options& options, const Hooks& hooks = {});

}  // namespace shard::convert
