// Codec packed: what is put in comes out for every shape and content, in every layout, by every coder; and
// what is no frame is refused before anything is read or written where it must not be.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/digest/checksum.hpp"
#include "support/expect_error.hpp"
#include "support/format/packed_support.hpp"

namespace shard {
namespace {

using namespace shard::testing;
using packed::Shape;

TEST(Packed, EveryContentOfEveryShapeComesBack) {
  std::mt19937 random(1);
  for (std::uint32_t channels = 1; channels <= 4; ++channels) {
    for (int i = 0; i < 60; ++i) {
      std::uniform_int_distribution<std::uint32_t> side(1, 80);
      const Shape shape{channels, side(random), side(random)};
      for (const Content content : kContents) expect_comes_back(shape, content, random);
    }
  }
}

TEST(Packed, ShapesAtTheEdgesOfStripsGroupsAndPairsComeBack) {
  std::mt19937 random(2);
  for (const std::uint32_t height : {1U, 2U, 3U, 31U, 32U, 33U, 64U, 65U, 200U}) {
    for (const std::uint32_t width :
         {1U, 2U, 7U, 8U, 9U, 15U, 16U, 17U, 31U, 32U, 33U, 63U, 64U, 65U, 200U}) {
      for (std::uint32_t channels = 1; channels <= 4; ++channels)
        expect_comes_back({channels, height, width}, Content::smooth, random);
    }
  }
}

TEST(Packed, LongAndWideSamplesComeBack) {
  std::mt19937 random(3);
  expect_comes_back({1, 65535, 1}, Content::smooth, random);
  expect_comes_back({1, 1, 65535}, Content::smooth, random);
  expect_comes_back({3, 3000, 33}, Content::noise, random);
  expect_comes_back({4, 700, 130}, Content::steps, random);
}

// The example of docs/format.md.
TEST(Packed, TheWorkedExampleIsWhatTheDocumentSays) {
  const Shape shape{1, 4, 9};
  const std::vector<std::uint8_t> values{100, 101, 103, 103, 102, 100, 99,  99, 104,  //
                                         100, 102, 103, 104, 102, 101, 99,  98, 105,  //
                                         100, 101, 102, 103, 102, 101, 100, 99, 105,  //
                                         100, 101, 102, 103, 102, 101, 100, 99, 105};
  const std::vector<std::uint8_t> frame{
      0x01, 0x01, 0x01, 0x00, 0x04, 0x00, 0x09, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
      0x64, 0x00, 0x00, 0x00, 0x43, 0x00, 0x02, 0x00, 0xac, 0x39, 0x8d, 0x2c, 0xbb, 0x6e, 0x8d, 0x88,
      0x88, 0x88, 0x8a, 0x88, 0x88, 0x88, 0xa6, 0xba, 0xaa, 0xaa, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
  const auto bytes = std::as_bytes(std::span(values));
  for (const auto& [name, kernels] : all_kernels()) {
    const auto found = packed::encode(kernels, shape, Layout::nchw, bytes);
    EXPECT_TRUE(std::ranges::equal(found, std::as_bytes(std::span(frame)))) << name;
  }
}

// Frames that were written once must be read for ever, and a sample has one frame.
TEST(Packed, FramesAreTheSameInEveryVersion) {
  std::mt19937 random(8);
  std::vector<std::string> found;
  for (const Shape& shape : {Shape{1, 9, 70}, Shape{2, 64, 33}, Shape{3, 101, 96}, Shape{4, 12, 31}}) {
    for (const Content content : {Content::gradient, Content::smooth, Content::steps, Content::noise}) {
      const auto planes = make_content(shape, content, random);
      found.push_back(to_hex(xxh3(packed::encode(packed::best_kernels(), shape, Layout::nchw, planes))));
    }
  }
  const std::vector<std::string> expected{
      "2eec54e0e76e90b5", "8325fb2ed53587a8", "4cdf8e047223092c", "50b839d77de45cbe",
      "c3019bfeb2768d69", "a85abcca35f8f959", "9e4202c56e6fe5d0", "60cd2f13dd3a6f07",
      "afcef6d9887c3edc", "e84dfb1f27524483", "179c7cc431977f49", "5244aeb40c3b5181",
      "0476bc749b59768a", "d13086a3a09a8c2e", "fa4c5a0f8805586a", "1ff6957094fbd25f"};
  EXPECT_EQ(found, expected);
}

TEST(Packed, NoiseIsStoredAsItIs) {
  std::mt19937 random(4);
  const Shape shape{3, 40, 40};
  const auto frame = packed::encode(packed::scalar_kernels(), shape, Layout::nchw,
                                    make_content(shape, Content::noise, random));
  EXPECT_EQ(frame[1], std::byte{packed::kStored});
  EXPECT_EQ(frame.size(), 16U + 4800U);
}

TEST(Packed, ConstantAndGrayPicturesTakeLittleMoreThanTheirCodes) {
  const Shape shape{3, 224, 224};
  std::vector<std::byte> pixels(shape.pixels_bytes(), std::byte{200});
  EXPECT_EQ(packed::encode(packed::scalar_kernels(), shape, Layout::nhwc, pixels).size(),
            packed::least_frame_bytes(shape));
  EXPECT_EQ(packed::least_frame_bytes(shape), 48U + 7 * 688);
}

TEST(Packed, TheFrameDoesNotDependOnTheLayout) {
  std::mt19937 random(5);
  for (const Content content : {Content::smooth, Content::noise}) {
    const Shape shape{3, 37, 45};
    const auto planes = make_content(shape, content, random);
    EXPECT_EQ(packed::encode(packed::scalar_kernels(), shape, Layout::nchw, planes),
              packed::encode(packed::scalar_kernels(), shape, Layout::nhwc, interleaved(shape, planes)));
  }
}

TEST(Packed, AnyBitsBehindSoundCodesAreSomeSample) {
  std::mt19937 random(6);
  const Shape shape{3, 20, 40};
  auto frame = packed::encode(packed::scalar_kernels(), shape, Layout::nchw,
                              make_content(shape, Content::smooth, random));
  const std::size_t bits = shape.first_strip() + packed::kSeedBytes + shape.code_bytes();
  for (std::size_t i = bits; i < bits + 100; ++i) frame[i] = static_cast<std::byte>(random());
  expect_same_verdict(shape, frame, true);
}

// A frame that was changed: the same verdict from every coder, and nothing outside of the frame is read.
class Refused : public ::testing::Test {
 protected:
  using Frame = std::vector<std::byte>;
  template <class Change>
  void refused(const Change& change, const char* why) {
    Frame frame = good_;
    change(frame);
    expect_same_verdict(shape_, frame, false);
    std::vector<std::byte> pixels(shape_.pixels_bytes());
    EXPECT_SHARD_ERROR(packed::decode(packed::scalar_kernels(), shape_, Layout::nchw, frame, pixels),
                       ErrorCode::corrupt, why);
  }

  Shape shape_{3, 21, 50};
  std::mt19937 random_{7};
  Frame good_ = packed::encode(packed::scalar_kernels(), shape_, Layout::nhwc,
                               make_content(shape_, Content::smooth, random_));
};

TEST_F(Refused, HeadersOfOtherFrames) {
  expect_same_verdict(shape_, good_, true);
  const auto set = [](std::size_t at, int value) {
    return [=](Frame& f) { f[at] = static_cast<std::byte>(value); };
  };
  refused(set(0, 0), "states version 0: this build reads version 1");
  refused(set(0, 2), "states version 2");
  refused(set(1, 2), "states mode 2");
  refused(set(1, 0), "a stored sample takes 3168");
  refused(set(2, 4), "states 4 channels of 50x21: a sample has 3 of 50x21");
  refused(set(3, 1), "states 259 channels");
  refused(set(4, 22), "3 channels of 50x22");
  refused(set(5, 1), "3 channels of 50x277");
  refused(set(6, 51), "3 channels of 51x21");
  refused(set(7, 1), "3 channels of 306x21");
}

TEST_F(Refused, Lengths) {
  for (const std::size_t size : {0U, 1U, 15U, 17U})
    refused([=](Frame& f) { f.resize(size); }, "multiple of 16");
  refused([](Frame& f) { f.resize(16); }, "has strip 0 from byte 16 to");
  refused([](Frame& f) { f.resize(f.size() - 16); }, "has strip 1");
  refused([](Frame& f) { f.resize(f.size() + 16); }, "ends after");
  refused([](Frame& f) { f.resize(f.size() - 1); }, "multiple of 16");
  refused([](Frame& f) { f[1] = std::byte{0}, f.resize(3168 + 16); }, "a stored sample takes 3168");
}

TEST_F(Refused, TablesOfStrips) {
  const auto set = [](std::size_t entry, std::uint32_t value) {
    return [=](Frame& f) {
      for (std::size_t i = 0; i < 4; ++i) f[8 + 4 * entry + i] = static_cast<std::byte>(value >> (8 * i));
    };
  };
  refused(set(0, 0), "has strip 0 from byte 16 to 0");
  refused(set(0, 1), "has a strip 0 of 0 bytes: its codes alone have 70");
  refused(set(0, 4), "its codes alone");
  refused(set(0, 0xffffffffU), "has strip 0 from byte 16 to 68719476720");
  refused(set(1, 0), "has strip 1");
  refused([&](Frame& f) { f[8] = static_cast<std::byte>(std::to_integer<unsigned>(f[8]) + 1); },
          "its codes say");
  refused([&](Frame& f) { f[8] = static_cast<std::byte>(std::to_integer<unsigned>(f[8]) - 1); },
          "its codes say");
}

TEST_F(Refused, CodesThatDoNotEndWhereTheStripEnds) {
  for (const unsigned nibbles : {0x00U, 0x88U, 0x8fU}) {
    refused(
        [=](Frame& f) {
          for (std::size_t i = 0; i < 66; ++i) f[16 + 4 + i] = static_cast<std::byte>(nibbles);
        },
        "its codes say");
  }
}

TEST_F(Refused, FlippedBytesGiveTheSameVerdictEverywhere) {
  for (std::size_t i = 0; i < good_.size(); ++i) {
    Frame frame = good_;
    frame[i] ^= static_cast<std::byte>(1U << random_() % 8);
    expect_same_verdict(shape_, frame);
  }
}

}  // namespace
}  // namespace shard
