#include "format/shard/arrival_proof.hpp"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "support/format/golden_cases.hpp"
#include "support/format/shard_samples.hpp"
#include "support/temp_dir.hpp"

namespace shard {
namespace {

using namespace shard::testing;

constexpr std::uint64_t kPieceBytes = 500;  // a sample has some 60

struct Arrival : ::testing::TestWithParam<const char*> {
  TempDir dir;
  ShardReader reader = write();
  std::vector<std::byte> bytes = file_bytes(dir.path() / "s");
  std::uint64_t begin = reader.header().head_end;
  std::mt19937 chance{4};

  ShardReader write() const {
    ShardWriterOptions with = small_options(DType::u8, Layout::nhwc, codec_spec_from_string(GetParam()));
    with.fields = golden_image_fields({}, {});
    write_shard(dir.path() / "s", with, 150);
    return ShardReader::open(dir.path() / "s");
  }
  // Each piece in parts of a random size.
  void send(ArrivalProof& proof, std::uint64_t piece, std::mt19937& random) const {
    const std::uint64_t first = begin + piece * kPieceBytes;
    const std::uint64_t last = std::min<std::uint64_t>(first + kPieceBytes, bytes.size());
    for (std::uint64_t at = first; at < last;) {
      const std::uint64_t size = std::min<std::uint64_t>(last - at, 1 + random() % 300);
      proof.take(at, std::span(bytes).subspan(at, size));
      at += size;
    }
  }
  std::uint64_t pieces() const { return (bytes.size() - begin + kPieceBytes - 1) / kPieceBytes; }
  bool in_one_piece(const StoredSampleRange& sample) const {
    return (sample.begin - begin) / kPieceBytes ==
           (sample.begin + sample.size_bytes - 1 - begin) / kPieceBytes;
  }
};

TEST_P(Arrival, ProvesTheSamplesThatLieInOnePiece) {
  ArrivalProof proof(reader, begin, kPieceBytes);
  for (std::uint64_t piece = 0; piece < pieces(); piece += 2) send(proof, piece, chance);
  for (std::uint64_t piece = 1; piece < pieces(); piece += 2) send(proof, piece, chance);
  ASSERT_EQ(reader.stored_samples(), 150 * (1 + reader.header().fields.size()));
  std::uint64_t cut = 0;
  for (std::uint64_t i = 0; i < reader.stored_samples(); ++i) {
    const bool whole = in_one_piece(reader.stored_sample(i));
    EXPECT_EQ(proof.proven(i), whole) << i;
    cut += whole ? 0 : 1;
  }
  EXPECT_GT(cut, 0U);
  EXPECT_LT(cut, reader.stored_samples());
}

TEST_P(Arrival, AFlippedBitIsFound) {
  for (int round = 0; round < 50; ++round) {
    const std::uint64_t at = begin + chance() % (bytes.size() - begin);
    bytes[at] ^= std::byte{1};
    ArrivalProof proof(reader, begin, kPieceBytes);
    for (std::uint64_t piece = 0; piece < pieces(); ++piece) send(proof, piece, chance);
    for (std::uint64_t i = 0; i < reader.stored_samples(); ++i) {
      const StoredSampleRange sample = reader.stored_sample(i);
      const bool damaged = sample.begin <= at && at < sample.begin + sample.size_bytes;
      EXPECT_EQ(proof.proven(i), in_one_piece(sample) && !damaged);
    }
    bytes[at] ^= std::byte{1};
  }
}

TEST_P(Arrival, APieceMayStartAgain) {
  ArrivalProof proof(reader, begin, kPieceBytes);
  proof.take(begin, std::span(bytes).subspan(begin, 100));
  proof.take(begin + 130, std::span(bytes).subspan(begin + 130, 40));  // a gap
  send(proof, 0, chance);
  EXPECT_TRUE(proof.proven(0));
}

TEST_P(Arrival, ThreadsBringDifferentPieces) {
  ArrivalProof proof(reader, begin, kPieceBytes);
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        std::mt19937 random(static_cast<unsigned>(t));
        for (std::uint64_t piece = t; piece < pieces(); piece += 4) send(proof, piece, random);
      });
  }
  for (std::uint64_t i = 0; i < reader.stored_samples(); ++i)
    EXPECT_EQ(proof.proven(i), in_one_piece(reader.stored_sample(i)));
}

INSTANTIATE_TEST_SUITE_P(Codecs, Arrival, ::testing::Values("none", "packed"));

}  // namespace
}  // namespace shard
