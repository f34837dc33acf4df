// Whether a sample is the one that its shard records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/stored_form.hpp"

namespace shard {

// Compares a sample with its checksum. `bytes`: the sample as it goes to the device. Throws corrupt naming
// shard and sample.
void verify_stored(const StoredForm& form, const ShardReader& shard, std::uint64_t sample,
                   std::span<const std::byte> bytes);
// The same for the mapped bytes of the sample.
void verify_mapped(const StoredForm& form, const ShardReader& shard, std::uint64_t sample);

}  // namespace shard
