// RegisteredRanges of the shards of a data set.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "shard/dataset.hpp"
#include "transport/registered_ranges.hpp"

namespace shard {

// The images of a shard; with fields, also those of the further fields, which are stored before them.
// Begins at a page.
std::span<const std::byte> registered_range(const ShardReader& shard, bool with_fields);

class RegisteredShards final : public RegisteredRanges {
 public:
  // Probes. `with_fields`: of each shard registered_range(), else its images only. Errors: those of probe().
  RegisteredShards(Dataset dataset, std::shared_ptr<Device> device,
                   std::function<std::uint64_t()> budget_bytes, bool with_fields = false);
  // The same with a budget that does not change.
  RegisteredShards(Dataset dataset, std::shared_ptr<Device> device, std::uint64_t budget_bytes);
};

}  // namespace shard
