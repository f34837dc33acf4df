// Whether the shards of an object store are still those that were sent.
// Stores that ignore If-None-Match let a second writer replace them.
#pragma once

#include <vector>

#include "remote/s3/s3_store.hpp"
#include "shard/shard_writer.hpp"

namespace shard::convert {

enum class StoredShard : std::uint8_t { as_sent, missing, other };

// Asks for the first bytes of the object: its size, and the digest of its head, which covers the checksums of
// all samples. Thread safe. Errors: those of HttpClient.
StoredShard look_at_stored(const S3Store& store, const ShardSummary& shard);

// Of all shards, in their order.
std::vector<StoredShard> look_at_stored(const S3Store& store, const std::vector<ShardSummary>& shards);

}  // namespace shard::convert
