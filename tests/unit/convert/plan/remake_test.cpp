// Samples are made again from their images, bit for bit.
#include "shard/convert/remake.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "shard/convert/convert.hpp"
#include "shard/dataset.hpp"
#include "support/expect_error.hpp"
#include "support/temp_dir.hpp"

namespace shard::convert {
namespace {

namespace fs = std::filesystem;

class RemakeTest : public ::testing::Test {
 protected:
  RemakeTest() {
    fs::create_directories(images_);
    for (const char* name : {"a.jpg", "b.jpg"})
      fs::copy_file(fs::path(SHARD_TEST_DATA) / "golden/images/jpeg_orientation_6.jpg", images_ / name);
    Options options;
    options.images = images_.string();
    options.out = dir_.path() / "out";
    options.preprocess.resize_short = 8;
    options.preprocess.crop = image::Size{8, 8};
    run(options);
  }
  testing::TempDir dir_;
  fs::path images_ = dir_.path() / "images";
};

TEST_F(RemakeTest, GivesTheStoredBytesOrAReason) {
  const Dataset stored = Dataset::open(dir_.path() / "out");
  const Remake remake(stored.info(), {}, {.images = images_.string()});
  Remake::Worker worker(remake);
  std::vector<std::byte> made(stored.info().spec.size_bytes());
  EXPECT_EQ(worker.make(1, "b.jpg", made), std::nullopt);
  EXPECT_TRUE(std::ranges::equal(made, stored.shard(0).images().frame(1)));
  EXPECT_TRUE(worker.fields().empty());
  fs::remove(images_ / "a.jpg");
  EXPECT_NE(worker.make(0, "a.jpg", made).value_or("").find("cannot open"), std::string::npos);
}

TEST_F(RemakeTest, RefusesWhatIsNoSourceAndFieldsThatAreNotStored) {
  const Dataset stored = Dataset::open(dir_.path() / "out");
  RemakeOptions options{.images = (dir_.path() / "none").string()};
  EXPECT_SHARD_ERROR(Remake(stored.info(), {}, options), ErrorCode::not_found,
                     "give the one that the data set was made from");
  options.images = images_.string();
  FurtherImages& mask = options.pairs.emplace_back();
  mask.name = "mask";
  mask.folder = images_;
  const std::vector<std::string> keys{"a.jpg", "b.jpg"};
  EXPECT_SHARD_ERROR(Remake(stored.info(), keys, options), ErrorCode::invalid_argument, "mask");
}

}  // namespace
}  // namespace shard::convert
