// Sizes of images in archives are looked at once, and again where anything is another one.
#include "convert/plan/kept_sizes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_handle.hpp"
#include "convert/engine/steps.hpp"
#include "convert/publish/journal.hpp"
#include "shard/convert/source.hpp"
#include "shard/error.hpp"
#include "support/convert/small_conversion.hpp"
#include "support/convert/tar_member.hpp"

namespace shard::convert {
namespace {

namespace fs = std::filesystem;
using testing::tar_member;

std::string content(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
std::string golden(const std::string& name) {
  return content(fs::path(SHARD_TEST_DATA) / "golden" / "images" / name);
}

constexpr std::uint64_t kImages = KeptSizes::kFewestImages + 5;

class KeptSizesTest : public SmallConversion {
 protected:
  void SetUp() override {
    std::ofstream archive(archive_, std::ios::binary);
    for (std::uint64_t i = 0; i < kImages; ++i)
      archive << tar_member(fmt::format("a/{:05}.jpg", i), i == 3   ? std::string("no image")
                                                           : i == 4 ? golden("png_animated.png")
                                                                    : golden("jpeg_420_33x20.jpg"));
    archive << std::string(1024, '\0');
    archive.close();
    std::this_thread::sleep_for(std::chrono::milliseconds(3'100));  // nothing is kept before
    ::setenv("SHARDIFY_INDEX_DIR", folder_.c_str(), 1);
  }
  void TearDown() override { ::unsetenv("SHARDIFY_INDEX_DIR"); }

  Options any_size() const {
    Options options;
    options.images = archive_.string();
    options.preprocess.free_size.emplace();
    options.preprocess.dtype = DType::u8;
    options.preprocess.layout = Layout::nhwc;
    options.preprocess.normalization = {};
    options.jobs = 2;
    return options;
  }
  // "33x20 33x20 ...", of the first six.
  static std::string sizes(const Options& options) {
    const Dataset data = open_source(options);
    std::string text;
    for (std::uint64_t i = 0; i < 6; ++i) {
      const Dataset::Location at = data.locate(i);
      const SampleSpec spec = data.shard(at.shard).images().spec_of(at.sample);
      text += fmt::format("{}x{} ", spec.width, spec.height);
    }
    return text;
  }
  std::string sizes() const { return sizes(any_size()); }
  std::vector<fs::path> kept() const {
    std::vector<fs::path> files;
    if (fs::exists(folder_))
      for (const auto& entry : fs::directory_iterator(folder_))
        if (entry.path().filename().native().starts_with("sizes-")) files.push_back(entry.path());
    return files;
  }
  // Keeps other sizes than the images have. They are taken if they are believed.
  void keep_others(const Options& options) const {
    const Plan plan = make_plan(options);
    DatasetSpec spec = convert::spec_of(options, plan);
    spec.codec = {};
    std::vector<KnownImage> known(kImages, {7, 9, {}});
    known[3] = known[5] = {};
    KeptSizes sizes(plan, serialize_plan(record_of(plan, spec)) + fmt::to_string(options.max_pixels));
    sizes.flush();
    sizes.write(known);
  }

  fs::path archive_ = dir_.path() / "a.tar";
  fs::path folder_ = dir_.path() / "index";
  const std::string right_ = "33x20 33x20 33x20 1x1 " + png_size() + "33x20 ";

 private:
  static std::string png_size() {
    const std::string png = golden("png_animated.png");
    const auto number = [&](std::size_t at) {
      return static_cast<unsigned>(static_cast<unsigned char>(png[at + 2])) << 8U |
             static_cast<unsigned char>(png[at + 3]);
    };
    return fmt::format("{}x{} ", number(16), number(20));
  }
};

TEST_F(KeptSizesTest, AreThoseOfTheImagesTheSecondTimeToo) {
  EXPECT_EQ(sizes(), right_);
  ASSERT_EQ(kept().size(), 1U);
  const std::string first = content(kept().front());
  EXPECT_EQ(sizes(), right_);
  EXPECT_EQ(content(kept().front()), first);
}

TEST_F(KeptSizesTest, AreTakenInPlaceOfTheHeaders) {
  keep_others(any_size());
  EXPECT_EQ(sizes(), "7x9 7x9 7x9 1x1 7x9 33x20 ");  // what was not known is looked at
}

TEST_F(KeptSizesTest, AreOfTheArchiveAsItIs) {
  keep_others(any_size());
  // Another byte, with the times of before: only the time of change tells.
  const auto time = fs::last_write_time(archive_);
  const UniqueFd fd(::open(archive_.c_str(), O_WRONLY | O_CLOEXEC));
  const std::string end(1, '\0');
  ASSERT_EQ(::pwrite(fd.get(), end.data(), 1, static_cast<off_t>(fs::file_size(archive_)) - 1), 1);
  fs::last_write_time(archive_, time);
  EXPECT_EQ(sizes(), right_);
}

TEST_F(KeptSizesTest, AreOfTheOptions) {
  keep_others(any_size());
  Options longest = any_size();
  longest.preprocess.free_size = image::FreeSize{image::FreeSize::Bound::longest, 16};
  EXPECT_EQ(sizes(longest).substr(0, 5), "16x9 ");
  Options fewer = any_size();
  fewer.max_pixels = 100;
  EXPECT_EQ(sizes(fewer).substr(0, 4), "1x1 ");
  EXPECT_EQ(sizes().substr(0, 4), "7x9 ");
}

TEST_F(KeptSizesTest, AreNotBelievedWhereAByteIsAnotherOneOrOthersMayWrite) {
  keep_others(any_size());
  ASSERT_EQ(kept().size(), 1U);
  const fs::path file = kept().front();
  const std::string good = content(file);
  for (std::size_t at = 0; at < good.size(); at += good.size() / 9) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    std::ofstream(file, std::ios::binary) << bad;
    EXPECT_EQ(sizes(), right_) << "byte " << at;
  }
  std::ofstream(file, std::ios::binary) << good;
  ASSERT_EQ(::chmod(file.c_str(), 0622), 0);
  EXPECT_EQ(sizes(), right_);
}

TEST_F(KeptSizesTest, AreNotKeptOfAnArchiveThatChangesOrOfFiles) {
  std::ofstream(archive_, std::ios::app) << std::string(512, '\0');  // a moment ago
  EXPECT_EQ(sizes(), right_);
  EXPECT_EQ(kept().size(), 0U);
  add("images/jpeg_420_33x20.jpg", 6);
  Options files = any_size();
  files.images = images_.string();
  EXPECT_EQ(sizes(files).substr(0, 6), "33x20 ");
  EXPECT_EQ(kept().size(), 0U);
}

}  // namespace
}  // namespace shard::convert
