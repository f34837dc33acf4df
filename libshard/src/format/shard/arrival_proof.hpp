// ArrivalProof: compares the stored samples of a shard with their digests while its bytes arrive from a
// server, when they are still in the processor's cache.
//
// The bytes come in pieces, each of them in order. A sample that lies in two pieces is not proven here,
// and is read again from the file.
//
// Thread safe for different pieces. The reader must outlive it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/digest/checksum.hpp"
#include "shard/shard_reader.hpp"

namespace shard {

class ArrivalProof {
 public:
  // The bytes come from `begin` on, in pieces of `piece_bytes`.
  ArrivalProof(const ShardReader& reader, std::uint64_t begin, std::uint64_t piece_bytes);

  // The next bytes of a piece, from byte `offset` of the shard on.
  // Errors: io (the head of the shard cannot be read any more).
  void take(std::uint64_t offset, std::span<const std::byte> bytes);
  // Of ShardReader::stored_sample(): whether its bytes came and match its digest.
  bool proven(std::uint64_t number) const noexcept {
    return (proven_[number / 64].load(std::memory_order_relaxed) >> (number % 64) & 1) != 0;
  }

 private:
  struct Piece {
    std::uint64_t next = 0;    // offset of the byte that comes next
    std::uint64_t number = 0;  // of the sample that it belongs to or precedes
    std::optional<StoredSampleRange> sample{};
    Xxh3Stream digest{};
  };
  void start(Piece& piece, std::uint64_t offset) const;

  const ShardReader& reader_;
  const std::uint64_t begin_;
  const std::uint64_t piece_bytes_;
  std::vector<std::unique_ptr<Piece>> pieces_;  // null: no byte has come
  std::vector<std::atomic<std::uint64_t>> proven_;
};

}  // namespace shard
