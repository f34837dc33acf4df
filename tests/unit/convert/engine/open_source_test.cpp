// Images without a conversion are the data set that a conversion makes of them.
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "format/shard/unconverted.hpp"
#include "shard/convert/convert.hpp"
#include "shard/convert/source.hpp"
#include "shard/dataset.hpp"
#include "support/convert/small_conversion.hpp"
#include "support/expect_error.hpp"

namespace shard::convert {
namespace {

namespace fs = std::filesystem;

class OpenSource : public SmallConversion {
 protected:
  void add_images() {
    add("images/jpeg_420_33x20.jpg", 4);
    add("images/png_animated.png", 3);
    add("images/jpeg_gray.jpg", 2);
  }
  Options small(const char* out = "out") const {
    Options options = this->options();
    options.out = dir_.path() / out;
    options.samples_per_shard = 4;
    return options;
  }
  // The same with samples as large as their images.
  Options any_size() const {
    Options options = small();
    options.preprocess.free_size.emplace();
    options.preprocess.dtype = DType::u8;
    options.preprocess.layout = Layout::nhwc;
    options.preprocess.normalization = {};
    return options;
  }
};

std::vector<std::byte> sample(const Dataset& data, std::uint64_t index) {
  const Dataset::Location at = data.locate(index);
  std::vector<std::byte> bytes(data.shard(at.shard).images().spec_of(at.sample).size_bytes());
  data.read(index, bytes);
  return bytes;
}

void expect_same(const Dataset& source, const Dataset& converted) {
  ASSERT_EQ(source.size(), converted.size());
  EXPECT_TRUE(source.is_unconverted());
  EXPECT_FALSE(converted.is_unconverted());
  EXPECT_EQ(source.info().classes, converted.info().classes);
  EXPECT_EQ(source.info().fingerprint, converted.info().fingerprint);
  EXPECT_EQ(source.info().source_digest, converted.info().source_digest);
  EXPECT_EQ(source.info().shards.size(), converted.info().shards.size());
  EXPECT_EQ(source.info().largest().sample_bytes, converted.info().largest().sample_bytes);
  for (std::uint64_t i = 0; i < source.size(); ++i) {
    EXPECT_EQ(source.key(i), converted.key(i));
    EXPECT_EQ(source.label(i), converted.label(i));
    EXPECT_EQ(sample(source, i), sample(converted, i)) << source.key(i);
    const Dataset::Location at = source.locate(i);
    EXPECT_EQ(at.shard, converted.locate(i).shard);
    EXPECT_EQ(source.shard(at.shard).images().checksum(at.sample),
              converted.shard(at.shard).images().checksum(at.sample));
  }
}

TEST_F(OpenSource, HasTheSamplesOfAConversion) {
  add_images();
  run(small());
  expect_same(open_source(small()), Dataset::open(dir_.path() / "out"));
}

TEST_F(OpenSource, HasThoseOfAnySize) {
  add_images();
  Options options = any_size();
  run(options);
  expect_same(open_source(options), Dataset::open(options.out));
  options.preprocess.free_size = image::FreeSize{image::FreeSize::Bound::longest, 20, 4};
  options.out = dir_.path() / "bounded";
  run(options);
  expect_same(open_source(options), Dataset::open(options.out));
}

TEST_F(OpenSource, WritesNothingAndNeedsNoOut) {
  add_images();
  Options options = small();
  options.out.clear();
  const Dataset data = open_source(options);
  EXPECT_EQ(data.size(), 9U);
  EXPECT_FALSE(fs::exists(dir_.path() / "out"));
  EXPECT_SHARD_ERROR(run(options), ErrorCode::invalid_argument, "`out` is empty");
}

TEST_F(OpenSource, NamesAnImageThatCannotBeUsed) {
  add("images/jpeg_420_33x20.jpg", 2);
  add("refused/corrupt-jpeg-no-end.jpg");
  for (const bool free : {false, true}) {
    Options options = small();
    if (free) options.preprocess.free_size.emplace();
    const Dataset data = open_source(options);
    ASSERT_EQ(data.size(), 3U);
    EXPECT_EQ(sample(data, 0), sample(data, 2));
    std::vector<std::byte> out(data.shard(0).images().spec_of(1).size_bytes());
    // In the order of keys: a/100, a/102 (the corrupt one), b/101.
    EXPECT_SHARD_ERROR(data.read(1, out), ErrorCode::corrupt, "image \"a/102.jpg\": ");
  }
}

// Also one that is refused for its size, before its pixels are looked at.
TEST_F(OpenSource, OpensWhateverTheHeadersSay) {
  add_images();
  for (const auto& entry : fs::directory_iterator(fs::path(SHARD_TEST_DATA) / "golden" / "refused"))
    fs::copy_file(entry.path(), images_ / "a" / entry.path().filename());
  Options options = small();
  options.preprocess.free_size.emplace();
  options.out = dir_.path() / "out";
  const Summary summary = run(options);
  const Dataset data = open_source(options);
  std::uint64_t unusable = 0;
  for (std::uint64_t i = 0; i < data.size(); ++i) {
    try {
      sample(data, i);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt) << error.what();
      ++unusable;
    }
  }
  EXPECT_GT(unusable, 20U);
  EXPECT_EQ(unusable, summary.rejects);
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A JPEG file with `bytes` of comments in front of all that its header says.
std::string with_comments(const std::string& jpeg, std::size_t bytes) {
  std::string file = jpeg.substr(0, 2);
  while (bytes > 0) {
    const std::size_t segment = bytes > 50'000 ? 40'000 : bytes;
    file += {'\xff', '\xfe', static_cast<char>((segment - 2) >> 8U), static_cast<char>((segment - 2) & 255U)};
    file.append(segment - 4, 'c');
    bytes -= segment;
  }
  return file + jpeg.substr(2);
}

// Headers are read in pieces, and may end at any byte of one.
TEST_F(OpenSource, FindsTheSizesInHeadersOfAnyLength) {
  const fs::path golden = fs::path(SHARD_TEST_DATA) / "golden" / "images";
  fs::create_directories(images_ / "a");
  int count = 0;
  for (const char* name : {"jpeg_420_33x20.jpg", "jpeg_gray_progressive.jpg", "jpeg_orientation_6.jpg"}) {
    const std::string jpeg = read_text(golden / name);
    ASSERT_FALSE(jpeg.empty()) << name;
    std::vector<std::size_t> comments{4, 5'000, 70'000};
    for (const std::size_t piece : {4096U, 65536U})
      for (std::size_t cut = 0; cut < jpeg.size() && cut < 1200; cut += 11)
        comments.push_back(piece - 2 - cut);
    for (const std::size_t bytes : comments)
      std::ofstream(images_ / "a" / (std::to_string(1000 + count++) + ".jpg"), std::ios::binary)
          << with_comments(jpeg, bytes);
  }
  Options options = any_size();
  run(options);
  expect_same(open_source(options), Dataset::open(options.out));
}

TEST_F(OpenSource, NoticesAFileThatHasChanged) {
  add_images();
  const Dataset data = open_source(small());
  const std::vector<std::byte> before = sample(data, 0);
  std::ofstream(images_ / "a" / "100.jpg", std::ios::app) << "x";
  std::vector<std::byte> out(before.size());
  sample(data, 1);  // so that the first is not kept
  EXPECT_SHARD_ERROR(data.read(0, out), ErrorCode::invalid_argument, "a/100.jpg");
}

TEST_F(OpenSource, MakesASampleOnceWhileSomebodyKeepsIt) {
  add_images();
  const Dataset data = open_source(small());
  const auto kept = data.shard(0).unconverted()->make(0);
  ASSERT_NE(kept, nullptr);
  data.shard(0).unconverted()->make(1);
  EXPECT_EQ(data.shard(0).unconverted()->make(0), kept);
  fs::remove(images_ / "a" / "100.jpg");
  EXPECT_EQ(data.shard(0).unconverted()->make(0), kept);
  run(small());
  EXPECT_EQ(Dataset::open(dir_.path() / "out").shard(0).unconverted(), nullptr);
}

TEST_F(OpenSource, IsReadByManyThreads) {
  add_images();
  const Dataset data = open_source(small());
  std::vector<std::vector<std::byte>> expected;
  for (std::uint64_t i = 0; i < data.size(); ++i) expected.push_back(sample(data, i));
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 5 * data.size(); ++i) {
        const std::uint64_t at = (i * (t + 1) + t) % data.size();
        EXPECT_EQ(sample(data, at), expected[at]);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(OpenSource, TellsImagesFromDataSets) {
  add_images();
  EXPECT_TRUE(names_images(images_.string()));
  EXPECT_TRUE(names_images("@list"));
  EXPECT_TRUE(names_images("train-{000..146}.tar"));
  EXPECT_FALSE(names_images((dir_.path() / "nowhere").string()));
  EXPECT_FALSE(names_images("https://example.org/train"));
  Options options = small();
  run(options);
  EXPECT_FALSE(names_images(options.out.string()));
  EXPECT_FALSE(names_images((options.out / "shard-00000.safetensors").string()));
  EXPECT_EQ(open_data(options.out).info().spec, options.preprocess.sample_spec());
  EXPECT_TRUE(open_data(images_).info().spec.is_free());
}

}  // namespace
}  // namespace shard::convert
