#include "format/shard/arrival_proof.hpp"

#include <algorithm>

namespace shard {

ArrivalProof::ArrivalProof(const ShardReader& reader, std::uint64_t begin, std::uint64_t piece_bytes)
    : reader_(reader),
      begin_(begin),
      piece_bytes_(piece_bytes),
      pieces_(static_cast<std::size_t>((reader.file_size_bytes() - begin + piece_bytes - 1) / piece_bytes)),
      proven_(static_cast<std::size_t>(reader.stored_samples() / 64 + 1)) {}

void ArrivalProof::start(Piece& piece, std::uint64_t offset) const {
  piece.next = offset;
  piece.number = reader_.first_stored_from(offset);
  piece.sample.reset();
}

void ArrivalProof::take(std::uint64_t offset, std::span<const std::byte> bytes) {
  std::unique_ptr<Piece>& place = pieces_[static_cast<std::size_t>((offset - begin_) / piece_bytes_)];
  if (!place) place = std::make_unique<Piece>();
  Piece& piece = *place;
  if (piece.next != offset) start(piece, offset);
  piece.next = offset + bytes.size();
  for (; piece.number < reader_.stored_samples(); ++piece.number, piece.sample.reset()) {
    if (!piece.sample) piece.sample = reader_.stored_sample(piece.number);
    const StoredSampleRange& sample = *piece.sample;
    if (sample.begin >= piece.next) return;
    const std::uint64_t from = std::max(sample.begin, offset);
    const std::uint64_t to = std::min(sample.begin + sample.size_bytes, piece.next);
    const std::span<const std::byte> here =
        bytes.subspan(static_cast<std::size_t>(from - offset), static_cast<std::size_t>(to - from));
    std::uint64_t found = 0;
    if (here.size() == sample.size_bytes) {
      found = xxh3(here);
    } else {
      if (from == sample.begin) piece.digest = Xxh3Stream();
      piece.digest.update(here);
      if (to < sample.begin + sample.size_bytes) return;
      found = piece.digest.digest();
    }
    if (found == sample.digest)
      proven_[static_cast<std::size_t>(piece.number / 64)].fetch_or(std::uint64_t{1} << (piece.number % 64),
                                                                    std::memory_order_relaxed);
  }
}

}  // namespace shard
