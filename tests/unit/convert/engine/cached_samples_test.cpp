// A cache of images is filled by those who use them, and is what a conversion writes.
#include "convert/engine/cached_samples.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "shard/convert/convert.hpp"
#include "shard/convert/image_cache.hpp"
#include "shard/convert/source.hpp"
#include "shard/dataset.hpp"
#include "support/convert/small_conversion.hpp"
#include "support/expect_error.hpp"

namespace shard::convert {
namespace {

namespace fs = std::filesystem;

class CachedSamplesTest : public SmallConversion {
 protected:
  void SetUp() override {
    add("images/jpeg_420_33x20.jpg", 4);
    add("images/png_animated.png", 3);
    add("images/jpeg_gray.jpg", 2);
  }
  Options small(const char* out) const {
    Options options = this->options();
    options.out = dir_.path() / out;
    options.samples_per_shard = 4;
    return options;
  }
  fs::path cache() const { return dir_.path() / "cache"; }
};

std::vector<std::byte> sample_of(const Dataset& data, std::uint64_t index) {
  const Dataset::Location at = data.locate(index);
  std::vector<std::byte> bytes(data.shard(at.shard).images().spec_of(at.sample).size_bytes());
  data.read(index, bytes);
  return bytes;
}

std::map<std::string, std::string> files_in(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::ifstream in(entry.path(), std::ios::binary);
    files[entry.path().filename()] = {std::istreambuf_iterator<char>(in), {}};
  }
  return files;
}

CacheProgress finished(const ImageCache& cache) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!cache.progress().complete && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return cache.progress();
}

TEST_F(CachedSamplesTest, AreADataSetWhenEachWasUsedOnce) {
  run(small("out"));
  const Dataset converted = Dataset::open(dir_.path() / "out");
  const CachedSource source = open_source(small("unused"), {cache()});
  ASSERT_TRUE(source.cache);
  EXPECT_EQ(source.cache->progress().stored, 0U);
  for (std::uint64_t i = converted.size(); i-- > 0;)
    EXPECT_EQ(sample_of(source.data, i), sample_of(converted, i)) << i;
  const CacheProgress now = finished(*source.cache);
  EXPECT_TRUE(now.complete);
  EXPECT_EQ(now.decoded, 9U);
  EXPECT_EQ(now.decoded_for_shards, 0U);
  EXPECT_EQ(now.finished_shards, 3U);
  EXPECT_EQ(files_in(cache()), files_in(dir_.path() / "out"));
  for (std::uint64_t i = 0; i < converted.size(); ++i)
    EXPECT_EQ(sample_of(source.data, i), sample_of(converted, i)) << i;
  EXPECT_EQ(source.cache->progress().decoded, 9U);
  const CachedSource again = open_source(small("unused"), {cache()});
  EXPECT_FALSE(again.cache);
  EXPECT_FALSE(again.data.is_unconverted());
}

TEST_F(CachedSamplesTest, ThatWereStoredServeTheNextProcess) {
  {
    const CachedSource first = open_source(small("unused"), {cache()});
    for (std::uint64_t i = 0; i < 6; ++i) sample_of(first.data, i);
    first.cache->stop();
  }
  const CachedSource second = open_source(small("unused"), {cache()});
  EXPECT_GE(second.cache->progress().stored, 6U);
  for (std::uint64_t i = 0; i < 6; ++i) sample_of(second.data, i);
  EXPECT_EQ(second.cache->progress().decoded, 0U);
  EXPECT_EQ(second.cache->progress().found, 6U);
}

TEST_F(CachedSamplesTest, OfOtherOptionsAreRefusedWithTheDifference) {
  const CachedSource source = open_source(small("unused"), {cache()});
  sample_of(source.data, 0);
  Options other = small("unused");
  other.preprocess.resize_short += 1;
  EXPECT_SHARD_ERROR(open_source(other, CacheOptions{cache()}), ErrorCode::invalid_argument, "resize: ");
}

TEST_F(CachedSamplesTest, ThreadsMakeEachOnce) {
  const CachedSource source = open_source(small("unused"), {cache()});
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < 9; ++i) sample_of(source.data, i);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(source.cache->progress().decoded, 9U);
}

}  // namespace
}  // namespace shard::convert
