// Whether a sample is the one that its shard records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/stored_form.hpp"

namespace shard {

// All throw corrupt naming shard and sample.
//
// Compares what is stored of a sample with its checksum: a frame has bytes on which its sample does not
// depend.
void verify_frame(const StoredForm& form, const ShardReader& shard, std::uint64_t sample,
                  std::span<const std::byte> frame);
// Compares a sample with its checksum. `bytes`: the sample as it goes to the device. If that is its frame,
// it is compared too.
void verify_stored(const StoredForm& form, const ShardReader& shard, std::uint64_t sample,
                   std::span<const std::byte> bytes);
// The same for the mapped bytes of the sample.
void verify_mapped(const StoredForm& form, const ShardReader& shard, std::uint64_t sample);
// The same, and all else that a device finds invalid: an index that is not that of its JPEG.
void verify_whole(const StoredForm& form, const ShardReader& shard, std::uint64_t sample);
// Reads the frame of a sample that the host decodes, compares it, and decodes it to `out`, which must be
// compared by verify_stored().
void read_verified(const StoredForm& form, const ShardReader& shard, std::uint64_t sample,
                   std::span<std::byte> out);

}  // namespace shard
