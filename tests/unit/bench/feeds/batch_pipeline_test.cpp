// Batches made on many threads arrive whole and in order.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "feeds/batch_pipeline.hpp"
#include "shard/dtype.hpp"
#include "shard/error.hpp"
#include "shard/loader/device.hpp"
#include "support/expect_error.hpp"

namespace shard::bench {
namespace {

class Numbers final : public RowMaker {
 public:
  explicit Numbers(std::uint64_t fails) : fails_(fails) {}
  void make(std::uint64_t index, std::span<std::byte> row) override {
    if (index == fails_) throw Error(ErrorCode::io, "row " + std::to_string(index) + " is gone");
    std::memset(row.data(), static_cast<int>(index), row.size());
  }

 private:
  std::uint64_t fails_;
};

BatchPipelineOptions numbers(std::uint64_t fails = ~std::uint64_t{0}) {
  BatchPipelineOptions options;
  options.made = {DType::u8, Layout::nhwc, 3, 4, 8};
  options.batch_size = 3;
  options.threads = 4;
  options.slots = 2;
  options.maker = [fails] { return std::make_unique<Numbers>(fails); };
  return options;
}

TEST(BatchPipeline, BringsEveryRowToItsPlaceThroughARingThatIsUsedAgain) {
  BatchPipeline pipeline(make_host_device(2), numbers());
  for (const std::uint64_t rows : {1U, 3U, 20U, 20U}) {
    std::vector<std::byte> out(rows * 96, std::byte{0xEE});
    const BatchRun run = pipeline.run(rows, out);
    EXPECT_EQ(run.rows, rows);
    EXPECT_GT(run.seconds, 0);
    for (std::uint64_t i = 0; i < out.size(); ++i)
      ASSERT_EQ(std::to_integer<std::uint64_t>(out[i]), i / 96) << "of " << rows;
  }
}

TEST(BatchPipeline, NormalisesOnTheDevice) {
  BatchPipelineOptions options = numbers();
  options.transform.dtype = DType::f32;
  options.transform.layout = Layout::nchw;
  options.transform.normalization = Normalization{{0.5F, 0.25F, 0.0F}, {0.5F, 0.5F, 2.0F}};
  BatchPipeline pipeline(make_host_device(2), options);
  std::vector<std::byte> out(7 * 96 * 4);
  pipeline.run(7, out);
  std::vector<float> values(7 * 96);
  std::memcpy(values.data(), out.data(), out.size());
  const float byte = 6.0F / 255.0F;
  EXPECT_EQ(values[6 * 96], (byte - 0.5F) / 0.5F);
  EXPECT_EQ(values[6 * 96 + 32], (byte - 0.25F) / 0.5F);
  EXPECT_EQ(values[6 * 96 + 95], byte / 2.0F);
}

TEST(BatchPipeline, EndsWithWhatAMakerThrows) {
  for (const std::uint64_t fails : {0U, 7U, 99U}) {
    BatchPipeline pipeline(make_host_device(2), numbers(fails));
    EXPECT_SHARD_ERROR(pipeline.run(100), ErrorCode::io, "row " + std::to_string(fails) + " is gone");
  }
}

}  // namespace
}  // namespace shard::bench
