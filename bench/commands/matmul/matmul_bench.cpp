#include "commands/matmul/matmul_bench.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include "data/random.hpp"
#include "harness/measure.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

constexpr std::size_t kMostSize = 16'384;  // three matrices of 1 GiB
constexpr std::size_t kMostTimes = 100'000;

double operations(std::size_t n) {
  const auto size = static_cast<double>(n);
  return 2 * size * size * size;
}

std::vector<float> random_matrix(std::size_t n, std::uint64_t which) {
  Random random(n, which, 0);
  std::vector<float> values(n * n);
  for (float& value : values) value = random.uniform(-1, 1);
  return values;
}

// Also the warm-up.
void check(Multiplier& multiplier, MatmulCase& one, std::span<const float> a, std::span<const float> b) {
  std::vector<float> c(a.size(), std::nanf(""));
  multiplier.load(one.n, a, b);
  multiplier.multiply(1);
  multiplier.store(c);
  one.error = largest_error(one.n, a, b, c);
  if (!(one.error <= one.error_bound))
    one.problem = fmt::format("wrong: error {:.1e}, at most {:.1e} is rounding", one.error, one.error_bound);
}

MatmulSample measure(Multiplier& multiplier, std::size_t n, std::span<const float> a,
                     std::span<const float> b, std::span<float> c, double seconds) {
  MatmulSample sample;
  sample.load_seconds = multiplier.load(n, a, b);
  sample.multiply_seconds = multiplier.multiply(1);
  sample.store_seconds = multiplier.store(c);
  const double guess = std::max(multiplier.multiply(1), 1e-7);
  std::size_t times = std::clamp<std::size_t>(static_cast<std::size_t>(seconds / guess) + 1, 1, kMostTimes);
  double took = multiplier.multiply(times);
  if (took < seconds && times < kMostTimes) {  // a GPU overlaps what one call cannot
    times =
        std::min(kMostTimes, static_cast<std::size_t>(static_cast<double>(times) * 1.2 * seconds / took) + 1);
    took = multiplier.multiply(times);
  }
  sample.flops = operations(n) * static_cast<double>(times) / took;
  sample.peak_flops = multiplier.peak_flops();
  return sample;
}

}  // namespace

std::vector<std::unique_ptr<Multiplier>> make_gpu_multipliers(std::string& absent) {
  std::vector<std::unique_ptr<Multiplier>> list;
#ifdef SHARD_WITH_CUBLAS
  detail::add_cublas_multipliers(list, absent);
#else
  absent = "this shardbench was built without CUDA or without cuBLAS";
#endif
  return list;
}

double largest_error(std::size_t n, std::span<const float> a, std::span<const float> b,
                     std::span<const float> c) {
  constexpr std::size_t kSide = 32;
  const std::size_t side = std::min(n, kSide);
  Random random(n, 2, 1);
  double largest = 0;
  for (std::size_t v = 0; v < side; ++v) {
    for (std::size_t u = 0; u < side; ++u) {
      // One entry of each of side x side parts; at their edges the matrix's own.
      const auto pick = [&](std::size_t part) {
        const std::size_t begin = part * n / side;
        const std::size_t end = (part + 1) * n / side;
        if (part == 0) return begin;
        return part + 1 == side ? end - 1 : begin + random.below(static_cast<std::uint32_t>(end - begin));
      };
      const std::size_t row = pick(v);
      const std::size_t column = pick(u);
      double sum = 0;
      double scale = 0;
      for (std::size_t k = 0; k < n; ++k) {
        const double term = static_cast<double>(a[row * n + k]) * static_cast<double>(b[k * n + column]);
        sum += term;
        scale += std::abs(term);
      }
      const double error = std::abs(static_cast<double>(c[row * n + column]) - sum) / std::max(scale, 1e-300);
      if (!(error <= largest)) largest = error;  // NaN stays
      if (std::isnan(largest)) return largest;
    }
  }
  return largest;
}

std::vector<MatmulCase> bench_matmul(const MatmulOptions& options,
                                     std::span<const std::unique_ptr<Multiplier>> multipliers,
                                     const std::atomic<bool>& cancel,
                                     const std::function<void(const std::vector<MatmulCase>&)>& done) {
  for (const std::size_t n : options.sizes)
    if (n < 1 || n > kMostSize)
      throw Error(ErrorCode::invalid_argument, fmt::format("--sizes {}: expected 1 to {}", n, kMostSize));
  std::vector<MatmulCase> cases;
  for (const std::size_t n : options.sizes) {
    const std::vector<float> a = random_matrix(n, 0);
    const std::vector<float> b = random_matrix(n, 1);
    std::vector<float> c(n * n);
    const std::size_t first = cases.size();
    for (const auto& multiplier : multipliers) {
      stop_when(cancel);
      MatmulCase one;
      one.n = n;
      one.name = multiplier->name();
      one.on_gpu = multiplier->on_gpu();
      one.peak_is = multiplier->peak_is();
      one.error_bound = multiplier->error_bound(n);
      attempt(one.problem, [&] { check(*multiplier, one, a, b); });
      cases.push_back(one);
    }
    for (unsigned k = 0; k < options.repeat; ++k) {
      for (std::size_t i = 0; i < multipliers.size(); ++i) {
        stop_when(cancel);
        MatmulCase& one = cases[first + i];
        if (one.problem.empty()) one.samples.push_back(measure(*multipliers[i], n, a, b, c, options.seconds));
      }
    }
    done(cases);
  }
  return cases;
}

double gpu_peak_flops(GpuArithmetic kind, int compute_major, int compute_minor, int multiprocessors,
                      std::uint64_t clock_hz) noexcept {
  // Operations a clock and multiprocessor, from the "arithmetic instructions" of NVIDIA's architecture
  // papers.
  struct Row {
    int major, minor;
    double f32, tf32, f16;
  };
  constexpr Row kRows[] = {{7, 0, 128, 0, 1024},  {7, 5, 128, 0, 1024},    {8, 0, 128, 1024, 2048},
                           {8, 6, 256, 256, 512}, {9, 0, 256, 2048, 4096}, {10, 0, 256, 4096, 8192}};
  for (const Row& row : kRows) {
    if (row.major != compute_major || row.minor != compute_minor) continue;
    const double each = kind == GpuArithmetic::f32    ? row.f32
                        : kind == GpuArithmetic::tf32 ? row.tf32
                                                      : row.f16;
    return each * multiprocessors * static_cast<double>(clock_hz);
  }
  return 0;
}

}  // namespace shard::bench
