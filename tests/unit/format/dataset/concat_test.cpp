// Several data sets as one.
#include <gtest/gtest.h>

#include "shard/dataset.hpp"
#include "shard/selection.hpp"
#include "support/expect_error.hpp"
#include "support/format/labelled_dataset.hpp"
#include "support/format/shard_samples.hpp"

namespace shard {
namespace {

using namespace shard::testing;

using Concat = LabelledDataset;

TEST_F(Concat, JoinsDataSetsByTheNamesOfTheirClasses) {
  Part first;
  first.classes = {"cat", "dog"};
  Part second;
  second.classes = {"bird", "cat", "eel"};
  second.codec = {CodecSpec::Kind::zstd, 1};
  const std::filesystem::path a = write("a", first);
  const std::filesystem::path b = write("b", second);
  const Dataset both = Dataset::open({a, b});
  const std::vector<std::string> joined{"cat", "dog", "bird", "eel"};
  EXPECT_EQ(both.info().classes, joined);
  EXPECT_EQ(both.size(), 1200U);
  EXPECT_TRUE(both.info().mixed_codecs);
  const Dataset parts[] = {Dataset::open(a), Dataset::open(b)};
  std::vector<std::byte> one(both.info().spec.size_bytes());
  std::vector<std::byte> other(one.size());
  for (std::uint64_t i = 0; i < both.size(); ++i) {
    const Dataset& part = parts[i / 600];
    ASSERT_EQ(both.key(i), part.key(i % 600));
    ASSERT_EQ(both.info().classes[static_cast<std::size_t>(both.label(i))],
              part.info().classes[static_cast<std::size_t>(part.label(i % 600))]);
    both.read(i, one);
    part.read(i % 600, other);
    ASSERT_EQ(one, other);
  }
  // Joined again, and selected: the labels go through both maps.
  Part third;
  third.classes = {"dog", "eel"};
  const Dataset all =
      Dataset::concat(std::vector{open("c", third), both.select(Selection::classes({"eel", "cat"}))});
  const std::vector<std::string> names{"dog", "eel", "cat", "bird"};
  EXPECT_EQ(all.info().classes, names);
  for (std::uint64_t i = 600; i < all.size(); ++i) {
    const bool eel = all.key(i)[0] == 'b' && all.shard(all.locate(i).shard).label(all.locate(i).sample) == 2;
    EXPECT_EQ(all.label(i), eel ? 1 : 2);
  }
}

TEST_F(Concat, RefusesToJoinWhatDiffers) {
  Part classes;
  classes.classes = {"cat"};
  Part wide;
  wide.spec.width = 6;
  const Dataset a = open("a", {});
  EXPECT_SHARD_ERROR(Dataset::concat(std::vector{a, open("b", wide)}), ErrorCode::invalid_argument,
                     "the sample of");
  EXPECT_SHARD_ERROR(Dataset::concat(std::vector{a, open("c", classes)}), ErrorCode::invalid_argument,
                     "has classes");
  EXPECT_SHARD_ERROR(Dataset::concat({}), ErrorCode::invalid_argument, "no data sets");
}

}  // namespace
}  // namespace shard
