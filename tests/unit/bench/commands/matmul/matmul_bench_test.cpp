// Matrix products of shardbench: right for every shape of edge, and a wrong one is found and not timed.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "commands/matmul/matmul_bench.hpp"
#include "data/random.hpp"
#include "support/expect_error.hpp"
#include "support/programs/bench_calls.hpp"

namespace shard::bench {
namespace {

std::vector<float> matrix(std::size_t n, std::uint64_t seed) {
  Random random(seed, n, 0);
  std::vector<float> values(n * n);
  for (float& value : values) value = random.uniform(-1, 1);
  return values;
}

std::vector<float> product(std::size_t n, const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<double> sums(n * n, 0);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < n; ++k)
      for (std::size_t j = 0; j < n; ++j)
        sums[i * n + j] += static_cast<double>(a[i * n + k]) * static_cast<double>(b[k * n + j]);
  return {sums.begin(), sums.end()};
}

TEST(CpuMultiplier, IsTheProductWhateverTheSizeAndTheThreads) {
  for (const unsigned threads : {1U, 3U}) {
    const auto multiplier = make_cpu_multiplier(threads);
    EXPECT_NE(multiplier->peak_is().find(threads == 1 ? "1 thread," : "3 threads,"), std::string::npos);
    for (const std::size_t n : {1U, 2U, 7U, 40U, 97U, 257U}) {
      const auto a = matrix(n, 1);
      const auto b = matrix(n, 2);
      const auto expected = product(n, a, b);
      std::vector<float> c(n * n, std::nanf(""));
      multiplier->load(n, a, b);
      multiplier->multiply(1);
      multiplier->store(c);
      double worst = 0;
      for (std::size_t i = 0; i < n * n; ++i) {
        const double error = std::abs(static_cast<double>(c[i]) - static_cast<double>(expected[i]));
        if (!(error <= worst)) worst = error;
      }
      EXPECT_LT(worst, 1e-6 * static_cast<double>(n)) << n << " on " << threads;
    }
  }
}

TEST(LargestError, SeesOneWrongEntryAtEachCornerAndAWrongTileInside) {
  constexpr std::size_t n = 200;
  const auto a = matrix(n, 1);
  const auto b = matrix(n, 2);
  const auto right = product(n, a, b);
  const double bound = make_cpu_multiplier(1)->error_bound(n);
  EXPECT_LT(largest_error(n, a, b, right), bound);
  for (const std::size_t at : {std::size_t{0}, n - 1, n * (n - 1), n * n - 1}) {
    auto c = right;
    c[at] += 0.01F;
    EXPECT_GT(largest_error(n, a, b, c), bound) << at;
    c[at] = std::nanf("");
    EXPECT_FALSE(largest_error(n, a, b, c) <= bound) << at;
  }
  auto c = right;
  for (std::size_t i = 96; i < 108; ++i)
    for (std::size_t j = 64; j < 80; ++j) c[i * n + j] = 0;
  EXPECT_GT(largest_error(n, a, b, c), bound);
}

// The error of forgetting one of the n terms of each sum is seen, up to the largest size by default.
TEST(LargestError, SeesOneForgottenTerm) {
  constexpr std::size_t n = 1024;
  const auto a = matrix(n, 1);
  const auto b = matrix(n, 2);
  const auto multiplier = make_cpu_multiplier(2);
  std::vector<float> c(n * n);
  multiplier->load(n, a, b);
  multiplier->multiply(1);
  multiplier->store(c);
  const double bound = make_cpu_multiplier(1)->error_bound(n);
  EXPECT_LT(largest_error(n, a, b, c), bound);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) c[i * n + j] -= a[i * n + n - 1] * b[(n - 1) * n + j];
  EXPECT_GT(largest_error(n, a, b, c), bound);
}

// Multiplies rightly, and then spoils it.
class SpoiltProduct final : public Multiplier {
 public:
  enum class How : std::uint8_t { one_tile, transposed, no_memory };
  explicit SpoiltProduct(How how) : how_(how) {}
  std::string name() const override { return "spoilt"; }
  double load(std::size_t n, std::span<const float> a, std::span<const float> b) override {
    if (how_ == How::no_memory) throw Error(ErrorCode::resource, "no room for the factors");
    n_ = n;
    if (how_ == How::transposed) std::swap(a, b);
    return right_->load(n, a, b);
  }
  double multiply(std::size_t times) override {
    ++products;
    return right_->multiply(times);
  }
  double store(std::span<float> c) override {
    const double seconds = right_->store(c);
    if (how_ == How::one_tile)
      for (std::size_t i = 0; i < 6; ++i)
        for (std::size_t j = n_ - 8; j < n_; ++j) c[i * n_ + j] *= 1.001F;
    return seconds;
  }
  double error_bound(std::size_t n) const noexcept override { return right_->error_bound(n); }
  double peak_flops() override { return 1; }
  std::string peak_is() const override { return "none"; }
  int products = 0;

 private:
  How how_;
  std::size_t n_ = 0;
  std::unique_ptr<Multiplier> right_ = make_cpu_multiplier(1);
};

TEST(BenchMatmul, DoesNotTimeAWrongProduct) {
  MatmulOptions options;
  options.sizes = {64, 130};
  options.repeat = 2;
  options.seconds = 0.001;
  for (const auto& [how, piece] : std::vector<std::pair<SpoiltProduct::How, std::string>>{
           {SpoiltProduct::How::one_tile, "wrong: error"},
           {SpoiltProduct::How::transposed, "wrong: error"},
           {SpoiltProduct::How::no_memory, "no room for the factors"}}) {
    std::vector<std::unique_ptr<Multiplier>> multipliers;
    multipliers.push_back(make_cpu_multiplier(1));
    multipliers.push_back(std::make_unique<SpoiltProduct>(how));
    const auto cases = bench_matmul(options, multipliers, kGoOn, kNoProgress);
    ASSERT_EQ(cases.size(), 4U);
    for (const MatmulCase& one : cases) {
      if (one.name == "spoilt") {
        EXPECT_NE(one.problem.find(piece), std::string::npos) << one.problem;
        EXPECT_TRUE(one.samples.empty());
      } else {
        EXPECT_EQ(one.problem, "");
        ASSERT_EQ(one.samples.size(), 2U);
        EXPECT_GT(one.samples[0].flops, 0);
        EXPECT_GT(one.samples[0].peak_flops, 0);
        EXPECT_LE(one.error, one.error_bound);
      }
    }
    EXPECT_LE(dynamic_cast<const SpoiltProduct&>(*multipliers[1]).products, 2);
  }
}

TEST(BenchMatmul, RefusesSizesOutOfBoundsAndStopsWhenAskedTo) {
  std::vector<std::unique_ptr<Multiplier>> multipliers;
  multipliers.push_back(make_cpu_multiplier(1));
  MatmulOptions options;
  options.sizes = {64, 0};
  EXPECT_SHARD_ERROR(bench_matmul(options, multipliers, kGoOn, kNoProgress), ErrorCode::invalid_argument,
                     "--sizes 0: expected 1 to 16384");
  options.sizes = {16'385};
  EXPECT_SHARD_ERROR(bench_matmul(options, multipliers, kGoOn, kNoProgress), ErrorCode::invalid_argument,
                     "--sizes 16385");
  options.sizes = {8};
  const std::atomic<bool> stop{true};
  EXPECT_SHARD_ERROR(bench_matmul(options, multipliers, stop, kNoProgress), ErrorCode::cancelled, "stopped");
}

// As NVIDIA states them for whole GPUs: H200 67 TFLOP/s of float32, A100 312 of float16, 156 of TF32.
TEST(GpuPeak, IsThatOfTheArchitecture) {
  EXPECT_NEAR(gpu_peak_flops(GpuArithmetic::f32, 9, 0, 132, 1'980'000'000), 66.9e12, 0.1e12);
  EXPECT_NEAR(gpu_peak_flops(GpuArithmetic::f16, 8, 0, 108, 1'410'000'000), 312e12, 1e12);
  EXPECT_NEAR(gpu_peak_flops(GpuArithmetic::tf32, 8, 0, 108, 1'410'000'000), 156e12, 1e12);
  EXPECT_EQ(gpu_peak_flops(GpuArithmetic::tf32, 7, 0, 80, 1'500'000'000), 0);
  EXPECT_EQ(gpu_peak_flops(GpuArithmetic::f32, 99, 0, 100, 1'000'000'000), 0);
}

}  // namespace
}  // namespace shard::bench
