// The decoders of pieces and lanes read no bytes but those that the source of bytes has promised: on a GPU
// others may still be on their way.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "jpeg/entropy.hpp"
#include "jpeg/lanes/mcu_walker.hpp"
#include "support/jpeg/jpeg_decoding.hpp"
#include "support/jpeg/random_jpeg.hpp"

namespace shard::jpeg {
namespace {

// Gives only what was promised, and every third time lets a round wait.
class PromisedBytes {
 public:
  explicit PromisedBytes(std::span<const std::byte> file) : file_(file), all_(file) {}
  std::uint32_t byte(std::uint32_t i) const { return all_.byte(i); }
  void start(std::uint32_t at) { promised_ = at + 32; }
  bool reach(std::uint32_t at) {
    if (++rounds_ % 3 == 0) return false;
    promised_ = at + 16;
    return true;
  }
  void need(std::uint32_t at, std::uint32_t bytes) {
    EXPECT_LE(bytes, 32U);
    promised_ = std::max(promised_, at + bytes);
  }
  void seek(std::uint32_t at) { next_ = at; }
  std::uint32_t read(std::uint32_t at) {
    EXPECT_EQ(at, next_);
    next_ = at + 4;
    return word(at);
  }
  std::uint32_t word(std::uint32_t at) const {
    // A ring reads the aligned word with byte at + 4, too.
    EXPECT_LE(at + 8, promised_);
    return at + 4 <= file_.size() ? all_.word(at) : 0;
  }

 private:
  std::span<const std::byte> file_;
  FileBytes all_;
  std::uint32_t promised_ = 0;
  std::uint32_t next_ = 0;
  std::uint32_t rounds_ = 0;
};

struct Tables {
  explicit Tables(const Header& header) : codes(std::size_t{2} * kMostTables) {
    for (std::uint32_t c = 0; c < header.layout.components; ++c) {
      const Plane& plane = header.layout.planes[c];
      make_codes(header.dc[plane.dc], codes[plane.dc]);
      make_codes(header.ac[plane.ac], codes[kMostTables + plane.ac]);
      dc[c] = static_cast<std::uint16_t>(plane.dc * kLookUpEntries);
      ac[c] = static_cast<std::uint16_t>((kMostTables + plane.ac) * kLookUpEntries);
    }
  }
  std::vector<CodeTable> codes;
  std::array<std::uint16_t, kMostComponents> dc{};
  std::array<std::uint16_t, kMostComponents> ac{};
};

std::vector<testing::Indexed> images() {
  std::vector<testing::Indexed> images;
  for (std::uint64_t i = 0; i < 60; ++i) {
    std::mt19937_64 random(i);
    testing::RandomJpegOptions odd;
    odd.coefficients = static_cast<testing::Coefficients>(i % 3);
    images.emplace_back(i % 2 == 0 ? testing::random_jpeg(random, odd)
                                   : testing::random_file(random, testing::random_options(random, 90)));
  }
  return images;
}

TEST(JpegRounds, APieceTakesOnlyBytesThatAreThere) {
  for (const testing::Indexed& image : images()) {
    const Layout& layout = image.header.layout;
    const Tables tables(image.header);
    const ScanPlan plan = plan_scan(layout, {{0, layout.mcu_rows}, {0, layout.mcu_columns}}, tables.dc.data(),
                                    tables.ac.data());
    const Index index = image.index();
    const Scan<PromisedBytes> scan{PromisedBytes(image.file), image.header.data_offset,
                                   static_cast<std::uint32_t>(image.file.size()), tables.codes[0].entries};
    for (std::uint32_t piece = 0; piece < layout.pieces(); ++piece) {
      PieceDecoder<PromisedBytes> decoder(plan, scan);
      const auto put = [](std::uint32_t k, std::int16_t) { ASSERT_LT(k, kBlockValues); };
      decoder.begin(piece, index[piece]);
      for (bool more = true; more; more = decoder.next())
        while (!decoder.fetch() || !decoder.read_codes(put)) {
        }
      ASSERT_EQ(decoder.finish(index[piece + 1]), Fault::none) << piece;
      ASSERT_FALSE(::testing::Test::HasFailure()) << piece;
    }
  }
}

// From the start of each piece, and from its bits that are no start.
TEST(JpegRounds, ALaneTakesOnlyBytesThatAreThere) {
  for (const testing::Indexed& image : images()) {
    const Layout& layout = image.header.layout;
    const Tables tables(image.header);
    std::vector<PackedSkip> skips(kPackedSkips);
    LookUp look_up;
    make_look_up(image.header.ac[layout.planes[0].ac], look_up.entries);
    for (std::uint32_t i = 0; i < kPackedSkips; ++i) skips[i] = packed_skip(look_up.entries, i);
    std::array<std::uint16_t, kMostComponents> skip{};
    for (std::uint32_t c = 0; c < layout.components; ++c)
      skip[c] = layout.planes[c].ac == layout.planes[0].ac ? 0 : kNoSkip;
    const ScanPlan plan = plan_scan(layout, {{0, layout.mcu_rows}, {0, layout.mcu_columns}}, tables.dc.data(),
                                    tables.ac.data(), skip.data());
    const Index index = image.index();
    const Scan<PromisedBytes> scan{PromisedBytes(image.file), image.header.data_offset,
                                   static_cast<std::uint32_t>(image.file.size()), tables.codes[0].entries,
                                   skips.data()};
    for (std::uint32_t piece = 0; piece < layout.pieces(); ++piece)
      for (const std::uint32_t bit : {0U, 3U, 29U}) {
        McuWalker<PromisedBytes> walker(plan, scan);
        walker.go_to(index[piece].position + bit);
        for (int mcu = 0; mcu < 9 && walker.fault() == Fault::none; ++mcu) {
          walker.begin_mcu();
          do {
            while (!walker.fetch() || !walker.read_codes()) {
            }
          } while (!walker.next_block());
          if (bit == 0 && mcu == 0) {
            ASSERT_EQ(walker.fault(), Fault::none) << piece;
          }
          walker.bits().restart();
          ASSERT_FALSE(::testing::Test::HasFailure()) << piece << " + " << bit;
        }
      }
  }
}

}  // namespace
}  // namespace shard::jpeg
