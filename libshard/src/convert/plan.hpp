// The plan of a conversion: a pure function of the inputs and the options.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "convert/scan.hpp"
#include "shard/convert/listing.hpp"
#include "shard/convert/options.hpp"

namespace shard::convert {

// What a list of inputs and labels is to become.
struct Plan {
  InputList list;
  LabelTable labels;
  std::uint64_t per_shard = 0;
  std::uint64_t listed = 0;  // inputs and those rejected while listing
  std::vector<std::uint64_t>
      sizes;                  // in bytes, of each of list.inputs; kUnknownSize where it cannot be known
  std::string source_digest;  // over keys, sizes and labels
  std::string names_digest;   // over keys and labels: what earlier versions recorded as source_digest
  static constexpr std::uint64_t kUnknownSize = ~std::uint64_t{0};
  std::optional<std::uint64_t> size_of(std::uint64_t input) const {
    return sizes[input] == kUnknownSize ? std::nullopt : std::optional(sizes[input]);
  }
  // An input has another size than when the plan was made: throws invalid_argument.
  void require_size(std::uint64_t input, std::uint64_t found) const;
  std::uint64_t shards() const noexcept { return (list.inputs.size() + per_shard - 1) / per_shard; }
  std::uint64_t shard_inputs(std::uint64_t shard) const noexcept;  // planned samples of a shard
};
// Looks at every input once (size), on options.threads() threads.
Plan make_plan(const Options& options);
Listing listing_of(const Plan& plan);

}  // namespace shard::convert
