// Selections, and data sets that are selections.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <set>
#include <span>

#include "base/digest/checksum.hpp"
#include "shard/dataset.hpp"
#include "shard/selection.hpp"
#include "support/expect_error.hpp"
#include "support/format/labelled_dataset.hpp"
#include "support/format/shard_samples.hpp"
#include "support/rounds.hpp"
#include "support/temp_dir.hpp"

namespace shard {
namespace {

using namespace shard::testing;

using Indices = std::vector<std::uint64_t>;

using Selections = LabelledDataset;

void expect_selected(const Dataset& some, const Dataset& all, const Indices& expected) {
  ASSERT_EQ(some.size(), expected.size());
  EXPECT_EQ(some.info().samples(), expected.size());
  std::vector<std::byte> one(all.info().spec.size_bytes());
  std::vector<std::byte> other(one.size());
  for (std::uint64_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(some.key(i), all.key(expected[i]));
    ASSERT_EQ(some.label(i), all.label(expected[i]));
    some.read(i, one);
    all.read(expected[i], other);
    ASSERT_EQ(one, other);
  }
  EXPECT_SHARD_ERROR(some.locate(expected.size()), ErrorCode::invalid_argument, "does not exist");
}

TEST_F(Selections, AreDataSetsOfTheChosenSamples) {
  const Dataset data = open("a", {});
  expect_selected(data.select(Selection::indices({599, 0, 300, 7, 8})), data, {0, 7, 8, 300, 599});
  const Dataset middle = data.select(Selection::ranges({{310, 312}, {311, 320}, {5, 5}}));
  expect_selected(middle, data, {310, 311, 312, 313, 314, 315, 316, 317, 318, 319});
  ASSERT_EQ(middle.info().shards.size(), 1U);  // the others are not touched
  EXPECT_EQ(middle.info().shards[0].samples, 10U);
  EXPECT_EQ(&middle.shard(0), &data.shard(1));
  expect_selected(data.select(Selection::labels([](std::int64_t label) { return label == 150; })), data,
                  {150, 450});
  expect_selected(data.select(Selection::column("labels", [](auto row) { return row[0] == std::byte{99}; })),
                  data, {99, 399, 599});
  expect_selected(data.select(Selection::where([](const Dataset&, std::uint64_t i) { return i % 200 == 1; })),
                  data, {1, 201, 401});
}

TEST_F(Selections, ComposeLikeSets) {
  const Dataset data = open("a", {});
  const auto random_set = [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::set<std::uint64_t> set;
    for (std::uint64_t n = random() % 500; n > 0; --n) set.insert(random() % data.size());
    return set;
  };
  for (std::uint64_t round = 0; round < rounds(50, 10); ++round) {
    const auto a = random_set(2 * round);
    const auto b = random_set(2 * round + 1);
    const Selection first = Selection::indices({a.begin(), a.end()});
    const Selection second = Selection::indices({b.begin(), b.end()});
    Indices expected;
    for (std::uint64_t i = 0; i < data.size(); ++i)
      if ((a.count(i) != 0 && b.count(i) == 0) || i == 13) expected.push_back(i);
    const Dataset once = data.select((first & !second) | Selection::ranges({{13, 14}}));
    expect_selected(once, data, expected);
    // A selection of a selection.
    Indices thinned;
    Indices positions;
    for (std::uint64_t i = 0; i < expected.size(); i += 3) {
      thinned.push_back(expected[i]);
      positions.push_back(i);
    }
    expect_selected(once.select(Selection::indices(positions)), data, thinned);
  }
}

TEST_F(Selections, RefuseWhatCannotBe) {
  Part part;
  part.classes = {"cat", "dog"};
  const Dataset data = open("a", part);
  EXPECT_SHARD_ERROR(data.select(Selection::indices({600})), ErrorCode::invalid_argument, "index 600");
  EXPECT_SHARD_ERROR(data.select(Selection::indices({3, 5, 3})), ErrorCode::invalid_argument,
                     "index 3 twice");
  EXPECT_SHARD_ERROR(data.select(Selection::indices({})), ErrorCode::invalid_argument,
                     "none of the 600 samples");
  EXPECT_SHARD_ERROR(data.select(Selection::ranges({{0, 601}})), ErrorCode::invalid_argument,
                     "range 0 to 601");
  EXPECT_SHARD_ERROR(data.select(Selection::ranges({{9, 8}})), ErrorCode::invalid_argument, "range 9 to 8");
  EXPECT_SHARD_ERROR(data.select(Selection::classes({"cow"})), ErrorCode::invalid_argument,
                     "no class \"cow\"");
  EXPECT_SHARD_ERROR(data.select(Selection::bits(SampleBits(599))), ErrorCode::invalid_argument,
                     "for 599 samples");
  EXPECT_SHARD_ERROR(data.select(Selection::column("x", [](auto) { return true; })), ErrorCode::not_found,
                     "column");
  EXPECT_SHARD_ERROR(Selection::hashed(0.5, 0.4), ErrorCode::invalid_argument, "0.5 to 0.4");
  EXPECT_SHARD_ERROR(Selection::hashed(std::nan(""), 1), ErrorCode::invalid_argument, "nan");
  EXPECT_SHARD_ERROR(data.fold(3, 3), ErrorCode::invalid_argument, "fold 3 of 3");
  EXPECT_SHARD_ERROR(open("b", {}).select(Selection::classes({"cat"})), ErrorCode::unsupported, "no classes");
  expect_selected(data.select(Selection::classes({"dog"})).select(Selection::indices({0, 1})), data, {1, 3});
}

// Each sample is in exactly one part, the shares are as asked for, and more data move no sample.
TEST_F(Selections, SplitByTheHashOfTheKey) {
  const Dataset data = open("a", {{20'000}});
  const auto [train, validation] = data.split(0.9, 5);
  EXPECT_EQ(train.size() + validation.size(), data.size());
  EXPECT_NEAR(static_cast<double>(train.size()), 18'000, 5 * std::sqrt(20'000 * 0.9 * 0.1));
  const auto of = keys(train);
  const std::set<std::string> in_train(of.begin(), of.end());
  for (const std::string& key : keys(validation)) EXPECT_EQ(in_train.count(key), 0U);
  const Dataset more = Dataset::concat(std::vector{open("b", {{500}}), data});
  for (const std::string& key : keys(more.split(0.9, 5).second.select(
           Selection::where([](const Dataset&d, std::uint64_t i) { return d.key(i)[0] == 'a'; }))))
    EXPECT_EQ(in_train.count(key), 0U);
  EXPECT_NE(keys(data.split(0.9, 6).second), keys(validation));  // another seed, another split

  std::set<std::string> held_out;
  for (std::uint32_t k = 0; k < 5; ++k) {
    const auto [rest, fold] = data.fold(k, 5);
    EXPECT_EQ(rest.size() + fold.size(), data.size());
    EXPECT_NEAR(static_cast<double>(fold.size()), 4'000, 5 * std::sqrt(20'000 * 0.2 * 0.8));
    for (const std::string& key : keys(fold)) EXPECT_TRUE(held_out.insert(key).second);
  }
  EXPECT_EQ(held_out.size(), data.size());
}

// By how many standard deviations the size of a part is off.
double sigmas_of(const Dataset& part, const Dataset& whole, double fraction) {
  const auto samples = static_cast<double>(whole.size());
  return (static_cast<double>(part.size()) - samples * fraction) /
         std::sqrt(samples * fraction * (1 - fraction));
}

TEST_F(Selections, ASplitOfASplitIsIndependentOfIt) {
  const std::filesystem::path folder = write("a", {{20'000}});
  const Dataset data = Dataset::open(folder);
  const auto [train, held_out] = data.split(0.8);
  EXPECT_EQ(train.cuts(0), 1U);
  EXPECT_EQ(train.cuts(7), 0U);
  for (const Dataset& part : {train, held_out}) {
    const auto [first, second] = part.split(0.5);
    EXPECT_LT(std::abs(sigmas_of(first, part, 0.5)), 5);
    EXPECT_EQ(first.size() + second.size(), part.size());
    const auto [third, fourth] = second.split(0.5);  // once more
    EXPECT_LT(std::abs(sigmas_of(third, second, 0.5)), 5);
    EXPECT_LT(std::abs(sigmas_of(part.fold(1, 4).second, part, 0.25)), 5);
    // By the seed that was used first, after another one.
    const Dataset other = part.split(0.5, 9).first;
    EXPECT_LT(std::abs(sigmas_of(other.split(0.5).first, other, 0.5)), 5);
  }
  const Dataset fold = data.fold(2, 5).first;
  EXPECT_LT(std::abs(sigmas_of(fold.split(0.5).first, fold, 0.5)), 5);
  const Dataset hashed = data.select(Selection::hashed(0, 0.3) | Selection::indices({0, 1}));
  EXPECT_LT(std::abs(sigmas_of(hashed.split(0.5).first, hashed, 0.5)), 5);
  const Dataset both = Dataset::concat(std::vector{held_out, open("b", {{500}})});
  EXPECT_LT(std::abs(sigmas_of(both.split(0.5).first, both, 0.5)), 5);
  // What was written and opened again knows how it was cut.
  train.save_selection("train");
  const Dataset recorded = Dataset::open(folder.string() + "#train");
  EXPECT_EQ(keys(recorded), keys(train));
  EXPECT_EQ(keys(recorded.split(0.5).first), keys(train.split(0.5).first));
}

// The first cut by a seed is what it was in every version: no sample moves from a training
// set into one for tests.
TEST_F(Selections, AFirstSplitIsTheOneOfEveryVersion) {
  const Dataset data = open("a", {{12, 8}});
  const auto numbers = [&](const Dataset& part) {
    Indices all;
    for (std::uint64_t i = 0; i < part.size(); ++i)
      for (std::uint64_t at = 0; at < data.size(); ++at)
        if (data.key(at) == part.key(i)) all.push_back(at);
    return all;
  };
  EXPECT_EQ(numbers(data.split(0.5).first), (Indices{2, 3, 4, 11, 15, 16, 19}));
  EXPECT_EQ(numbers(data.split(0.5, 3).first.split(0.5, 4).first), (Indices{2, 5, 6, 8, 9, 15, 16, 17}));
}

TEST_F(Selections, WithWrongCutsAreRefused) {
  const std::filesystem::path folder = write("a", {});
  const Dataset data = Dataset::open(folder);
  data.split(0.5, 3).first.select(Selection::hashed(0, 0.9, 12, 4)).save_selection("part");
  const auto bytes = file_bytes(folder / "part.selection");
  const std::string good(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string cuts = " of 600 cut 3 1 cut 12 5\n";
  ASSERT_NE(good.find(cuts), std::string::npos) << good;
  const auto opened_with = [&](const std::string& other) {
    std::string text = good;
    text.replace(text.find(cuts), cuts.size(), other);
    text.erase(text.rfind("digest"));
    text += "digest xxh3:" + to_hex(xxh3(text)) + "\n";
    write_bytes(folder / "part.selection", std::as_bytes(std::span(text)));
    return Dataset::open(folder.string() + "#part");
  };
  EXPECT_EQ(opened_with(cuts).cuts(12), 5U);
  EXPECT_EQ(opened_with(" of 600\n").cuts(12), 0U);  // as earlier versions wrote it
  for (const char* const bad :
       {"\n", " of 601\n", " of 600 cut 3\n", " of 600 cut 3 0\n", " of 600 cut 12 5 cut 3 1\n",
        " of 600 by 3 1\n", " of 600 cut 3 1 cut 3 1\n", " of 600 cut 3 4294967295\n", " of 600 cut x 1\n"})
    EXPECT_SHARD_ERROR(opened_with(bad), ErrorCode::corrupt, "part.selection");
}

TEST_F(Selections, AreToldApartByTheirDigest) {
  const std::filesystem::path folder = write("a", {});
  const Dataset data = Dataset::open(folder);
  EXPECT_EQ(data.selection_digest(), 0U);
  EXPECT_EQ(data.select(!Selection::ranges({})).selection_digest(), 0U);
  const std::uint64_t one = data.select(Selection::indices({1, 2, 500})).selection_digest();
  EXPECT_NE(one, 0U);
  EXPECT_EQ(Dataset::open(folder).select(Selection::indices({500, 2, 1})).selection_digest(), one);
  EXPECT_NE(data.select(Selection::indices({1, 3, 500})).selection_digest(), one);
  EXPECT_NE(data.select(Selection::ranges({{0, 300}})).selection_digest(),
            data.select(Selection::ranges({{300, 600}})).selection_digest());
  const Dataset twice = Dataset::concat(std::vector{data, data});
  EXPECT_NE(twice.selection_digest(), 0U);
}

TEST_F(Selections, AreSavedAndOpenedAgain) {
  const std::filesystem::path folder = write("a#1", {});  // a '#' in the name of a folder is nothing special
  const Dataset data = Dataset::open(folder);
  const auto again = [&] { return Dataset::open(folder.string() + "#part"); };
  std::mt19937_64 random(3);
  for (std::uint64_t round = 0; round < rounds(100, 20); ++round) {
    const std::uint64_t one_of = 1 + random() % 40;
    Indices expected;
    for (std::uint64_t i = round % 3 * 150; i < 600; ++i)
      if (random() % one_of == 0 || i == 599) expected.push_back(i);
    const Dataset some = data.select(Selection::indices(expected));
    some.save_selection("part");
    expect_selected(again(), data, expected);
    EXPECT_EQ(again().selection_digest(), some.selection_digest());
  }
  data.save_selection("part");
  expect_selected(again(), data, [] {
    Indices all(600);
    std::iota(all.begin(), all.end(), std::uint64_t{0});
    return all;
  }());
}

TEST_F(Selections, OfOtherDataOrDamagedOnesAreRefused) {
  const std::filesystem::path folder = write("a", {{5, 600}});
  const Dataset data = Dataset::open(folder);
  data.select(Selection::hashed(0, 0.5)).save_selection("half");
  data.select(Selection::indices({0, 3, 7})).save_selection("few");
  for (const std::string name : {"half", "few"}) {
    const std::vector<std::byte> good = file_bytes(folder / (name + ".selection"));
    for (std::size_t at = 0; at < good.size(); ++at) {
      std::vector<std::byte> bad = good;
      bad[at] ^= std::byte{static_cast<unsigned char>(1U << at % 8)};
      write_bytes(folder / (name + ".selection"), bad);
      EXPECT_SHARD_ERROR(Dataset::open(folder.string() + "#" + name), ErrorCode::corrupt,
                         name + ".selection");
      bad.assign(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(at));
      write_bytes(folder / (name + ".selection"), bad);
      EXPECT_SHARD_ERROR(Dataset::open(folder.string() + "#" + name), ErrorCode::corrupt,
                         name + ".selection");
    }
    write_bytes(folder / (name + ".selection"), good);
  }
  std::filesystem::copy(
      write("b", {{5, 601}}), folder,
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing);
  EXPECT_SHARD_ERROR(Dataset::open(folder.string() + "#half"), ErrorCode::corrupt, "has changed since");
  EXPECT_SHARD_ERROR(Dataset::open(folder.string() + "#none"), ErrorCode::not_found,
                     "has no selection \"none\"");
  EXPECT_SHARD_ERROR(Dataset::open(folder.string() + "#"), ErrorCode::invalid_argument,
                     "name of a selection");
  EXPECT_SHARD_ERROR(data.save_selection("a/b"), ErrorCode::invalid_argument, "name of a selection");
  EXPECT_SHARD_ERROR(data.save_selection(".a"), ErrorCode::invalid_argument, "name of a selection");
  EXPECT_SHARD_ERROR(Dataset::concat(std::vector{data, data}).save_selection("x"),
                     ErrorCode::invalid_argument, "several data sets");
  EXPECT_SHARD_ERROR(Dataset::open(folder / "s0.safetensors").save_selection("x"),
                     ErrorCode::invalid_argument, "a shard alone");
}

}  // namespace
}  // namespace shard
