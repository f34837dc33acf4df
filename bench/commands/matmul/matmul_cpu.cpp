// Products by OpenBLAS. The library is looked for when the program runs: no other subcommand has its threads.
#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/core.h>

#include "base/system/stopwatch.hpp"
#include "commands/matmul/matmul_bench.hpp"
#include "commands/matmul/peak_flops.hpp"
#include "harness/shared_library.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

// Its C interface, of indices of 32 bits.
struct OpenBlas {
  void (*gemm)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float* a,
               int lda, const float* b, int ldb, float beta, float* c, int ldc) = nullptr;
  void (*set_threads)(int threads) = nullptr;
  int (*threads)() = nullptr;
};
constexpr int kRowMajor = 101;
constexpr int kNoTranspose = 111;

// Stays loaded. Throws unsupported.
const OpenBlas& open_blas() {
  static const OpenBlas library = [] {
    const SharedLibrary file("OpenBLAS (Debian: libopenblas0-pthread)",
                             {"libopenblas.so.0", "libopenblas.so"});
    OpenBlas found;
    file.get(found.gemm, "cblas_sgemm");
    file.get(found.set_threads, "openblas_set_num_threads");
    file.get(found.threads, "openblas_get_num_threads");
    return found;
  }();
  return library;
}

class CpuMultiplier final : public Multiplier {
 public:
  explicit CpuMultiplier(unsigned threads) : threads_(threads) { use_threads(); }
  std::string name() const override { return "CPU f32"; }
  double load(std::size_t n, std::span<const float> a, std::span<const float> b) override {
    n_ = n;
    a_ = a;
    b_ = b;
    c_.resize(n * n);
    return 0;
  }
  double multiply(std::size_t times) override {
    use_threads();  // another multiplier of this program may have set them
    const auto n = static_cast<int>(n_);
    const Stopwatch watch;
    for (std::size_t i = 0; i < times; ++i)
      open_blas().gemm(kRowMajor, kNoTranspose, kNoTranspose, n, n, n, 1, a_.data(), n, b_.data(), n, 0,
                       c_.data(), n);
    return watch.seconds();
  }
  double store(std::span<float> c) override {
    std::copy(c_.begin(), c_.end(), c.begin());
    return 0;
  }
  // Errors of n roundings add up like a random walk, about sqrt(n) of them; eight times that is not reached
  // by chance.
  double error_bound(std::size_t n) const noexcept override {
    return 8 * std::sqrt(static_cast<double>(n)) * 0x1p-24;  // roundings of float32
  }
  double peak_flops() override {  // the best of several: what disturbs it is no limit
    double best = 0;
    for (int i = 0; i < 3; ++i) best = std::max(best, bench::peak_flops(threads_, 0.02));
    return best;
  }
  std::string peak_is() const override {
    return fmt::format("multiply-adds in registers, {} thread{}, {}", threads_, threads_ == 1 ? "" : "s",
                       peak_simd_target());
  }

 private:
  // So that a figure is of the threads that stand beside it.
  void use_threads() const {
    open_blas().set_threads(static_cast<int>(threads_));
    if (const int used = open_blas().threads(); used != static_cast<int>(threads_))
      throw Error(ErrorCode::unsupported,
                  fmt::format("--threads {}: this OpenBLAS takes {} at most", threads_, used));
  }
  unsigned threads_;
  std::size_t n_ = 0;
  std::span<const float> a_, b_;
  std::vector<float> c_;
};

}  // namespace

std::unique_ptr<Multiplier> make_cpu_multiplier(unsigned threads) {
  return std::make_unique<CpuMultiplier>(threads);
}

}  // namespace shard::bench
