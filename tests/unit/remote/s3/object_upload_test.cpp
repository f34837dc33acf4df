#include <gtest/gtest.h>

#include "remote/s3/object_upload.hpp"

namespace shard {
namespace {

TEST(ObjectUpload, PartsAreAtMostTenThousandAndAtLeastEightMebibytes) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
  for (const std::uint64_t size :
       {std::uint64_t{0}, std::uint64_t{1}, 100 * kMiB, 80'000 * kMiB, 80'000 * kMiB + 1, 5'000'000 * kMiB}) {
    const std::uint64_t part = upload_part_bytes(size);
    EXPECT_GE(part, 8 * kMiB);
    EXPECT_LE(part * 9'999, std::max(size, 8 * kMiB * 9'999) + 9'999 * kMiB);
    EXPECT_LE((size + part - 1) / part, 10'000U) << size;
  }
}

}  // namespace
}  // namespace shard
