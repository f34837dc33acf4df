// Product of square float32 matrices on the CPU: blocked and packed as in Goto and van de Geijn, "Anatomy of
// high-performance matrix multiplication" (ACM TOMS 2008), vector code chosen at run time.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace shard {
class ThreadPool;
}

namespace shard::bench {

class Gemm {
 public:
  explicit Gemm(unsigned threads);
  Gemm(const Gemm&) = delete;
  Gemm& operator=(const Gemm&) = delete;
  ~Gemm();

  // c = a b; float32 [n, n], C order; c overlaps neither. One call at a time.
  void multiply(std::size_t n, std::span<const float> a, std::span<const float> b, std::span<float> c);
  // Floating-point operations a second of all threads in registers alone (multiply and add count one each):
  // what no product can exceed. Takes about `seconds`.
  double peak_flops(double seconds);
  unsigned threads() const noexcept { return threads_; }

 private:
  struct Packed;
  template <class Body>
  void run(std::size_t n, std::size_t tasks, const Body& body);
  unsigned threads_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Packed> packed_;
};

std::string gemm_simd_target();  // "AVX2"

}  // namespace shard::bench
