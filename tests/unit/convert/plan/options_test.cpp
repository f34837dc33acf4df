// Options that cannot be.
#include <gtest/gtest.h>

#include "shard/convert/options.hpp"
#include "shard/error.hpp"
#include "support/expect_error.hpp"

namespace shard::convert {
namespace {

TEST(ConvertOptions, RefuseWhatCannotBe) {
  Options options;
  options.images = "x";
  options.out = "y";
  options.rank = 2;
  options.world_size = 2;
  EXPECT_SHARD_ERROR(options.check(), ErrorCode::invalid_argument, "`rank` 2");
  options.world_size = 3;
  options.overwrite = true;
  EXPECT_SHARD_ERROR(options.check(), ErrorCode::invalid_argument, "`overwrite` with several processes");
  options.overwrite = false;
  options.shard_bytes = 1000;
  EXPECT_SHARD_ERROR(options.check(), ErrorCode::invalid_argument, "`shard_bytes` 1000");
}

TEST(ConvertOptions, PutAtMostOneHundredMillionSamplesIntoAShard) {
  Options options;
  options.images = "in";
  options.out = "out";
  options.preprocess.crop = image::Size{1, 1};  // of 3 bytes, so that a shard of 1 GiB would hold more
  EXPECT_EQ(options.per_shard(), 100'000'000U);
  options.check();
  options.samples_per_shard = 100'000'001;
  EXPECT_SHARD_ERROR(options.check(), ErrorCode::invalid_argument,
                     "`samples_per_shard` is 100000001; it must be 1 to 100,000,000");
}

}  // namespace
}  // namespace shard::convert
