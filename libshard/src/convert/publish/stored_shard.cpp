#include "convert/publish/stored_shard.hpp"

#include <algorithm>
#include <cstddef>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "base/system/parallel.hpp"
#include "format/shard/shard_profile.hpp"

namespace shard::convert {

namespace {

constexpr unsigned kRequestsAtOnce = 16;
constexpr std::uint64_t kBeginBytes = 16 * 1024;  // the header of nearly every shard

// The digits of the head's digest in a header that begins with these bytes. Nothing: they are not among them.
std::optional<std::uint64_t> digest_in(std::span<const std::byte> begin) {
  const std::string_view text = as_text(begin);
  const auto at = find_digest_digits(text);
  return at ? from_hex(text.substr(*at, kDigestDigits)) : std::nullopt;
}

}  // namespace

StoredShard look_at_stored(const S3Store& store, const ShardSummary& shard) {
  const std::unique_ptr<HttpObject> object = store.folder().object(shard.file, shard.size_bytes);
  const std::uint64_t most = std::min(shard.size_bytes, 8 + kMaxShardHeaderBytes);
  try {
    for (std::uint64_t size = std::min(kBeginBytes, most);; size = most) {
      std::vector<std::byte> begin(size);
      store.folder().client().read(*object, 0, begin);
      const auto digest = digest_in(begin);
      if (digest || size == most)
        return digest == shard.head_digest ? StoredShard::as_sent : StoredShard::other;
    }
  } catch (const HttpRefused&) {  // so stores hide what is not there from keys that may not list it
    return StoredShard::missing;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::not_found) return StoredShard::missing;
    if (error.code() == ErrorCode::corrupt) return StoredShard::other;  // another size
    throw;
  }
}

std::vector<StoredShard> look_at_stored(const S3Store& store, const std::vector<ShardSummary>& shards) {
  std::vector<StoredShard> found(shards.size());
  parallel_for(kRequestsAtOnce, shards.size(),
               [&](unsigned, std::uint64_t i) { found[i] = look_at_stored(store, shards[i]); });
  return found;
}

}  // namespace shard::convert
