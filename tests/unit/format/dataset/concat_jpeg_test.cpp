// Data sets with codec jpeg beside others.
#include <gtest/gtest.h>

#include "shard/dataset.hpp"
#include "shard/selection.hpp"
#include "shard/verify.hpp"
#include "support/format/labelled_dataset.hpp"
#include "support/jpeg/jpeg_shard.hpp"

namespace shard::testing {
namespace {

using ConcatJpeg = LabelledDataset;

void expect_parts(const Dataset& whole, const std::vector<Dataset>& parts) {
  std::uint64_t at = 0;
  for (const Dataset& part : parts)
    for (std::uint64_t i = 0; i < part.size(); ++i, ++at) {
      std::vector<std::byte> one(whole.info().spec.size_bytes());
      std::vector<std::byte> other(one.size());
      whole.read(at, one);
      part.read(i, other);
      ASSERT_EQ(one, other) << at;
      ASSERT_EQ(whole.key(at), part.key(i));
    }
  EXPECT_EQ(at, whole.size());
}

TEST_F(ConcatJpeg, IsOneWithSetsOfOtherCodecsAndQualities) {
  std::vector<Dataset> parts;
  for (const char* codec : {"jpeg:95", "none", "packed", "jpeg:40"}) {
    Part part;
    part.shards = {7, 4};
    part.codec = codec_spec_from_string(codec);
    parts.push_back(open(std::to_string(parts.size()), part));
  }
  const Dataset whole = Dataset::concat(parts);
  EXPECT_TRUE(whole.info().mixed_codecs);
  expect_parts(whole, parts);
  const Dataset some = whole.select(Selection::indices({5, 20, 43}));
  std::vector<std::byte> one(whole.info().spec.size_bytes());
  std::vector<std::byte> other(one.size());
  some.read(2, one);
  parts.back().read(10, other);
  EXPECT_EQ(one, other);
}

TEST_F(ConcatJpeg, SetsOfAnyQualityStayOneCodec) {
  Part part;
  part.shards = {5};
  part.codec = codec_spec_from_string("jpeg:80");
  Part other = part;
  other.codec = codec_spec_from_string("jpeg:40");
  const std::vector<Dataset> parts{open("a", part), open("b", other)};
  const Dataset whole = Dataset::concat(parts);
  EXPECT_FALSE(whole.info().mixed_codecs);
  expect_parts(whole, parts);
}

}  // namespace
}  // namespace shard::testing
