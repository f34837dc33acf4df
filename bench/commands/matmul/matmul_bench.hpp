// Square matrix products on the CPU and on a GPU: their rates, their times including the copies, and whether
// the results are right.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace shard::bench {

// One way to multiply float32 matrices. Matrices are [n, n], C order. Calls: load, then multiply and store as
// often as wanted.
class Multiplier {
 public:
  virtual ~Multiplier() = default;
  virtual std::string name() const = 0;  // "CPU f32", "GPU TF32"
  virtual bool on_gpu() const noexcept { return false; }
  // Each of these returns the seconds it took, excluding the host's own copies.
  virtual double load(std::size_t n, std::span<const float> a,
                      std::span<const float> b) = 0;  // to the device
  virtual double multiply(std::size_t times) = 0;     // the same product
  virtual double store(std::span<float> c) = 0;       // from the device
  // The largest error that a right product may have (largest_error below): rounding, not luck.
  virtual double error_bound(std::size_t n) const noexcept = 0;
  // Floating-point operations per second that the hardware cannot exceed; 0: not known.
  virtual double peak_flops() = 0;
  virtual std::string peak_is() const = 0;
};

// float32 by OpenBLAS. Errors: unsupported (there is no OpenBLAS, or it cannot use as many threads).
std::unique_ptr<Multiplier> make_cpu_multiplier(unsigned threads);

// By cuBLAS: float32, and TF32 and float16 (with float32 sums) if the tensor cores have them. Empty, with the
// reason in `absent`, if there is no CUDA device or no cuBLAS, or if shardbench was built without them.
std::vector<std::unique_ptr<Multiplier>> make_gpu_multipliers(std::string& absent);

// The largest |c - a b| / (|a| |b|) of the entries that are checked: all of them up to n = 32, else 1,024,
// among them the corners and some of every part. The reference is summed in double.
double largest_error(std::size_t n, std::span<const float> a, std::span<const float> b,
                     std::span<const float> c);

struct MatmulSample {
  double flops = 0;             // a second, of the product alone, many in a row
  double load_seconds = 0;      // both factors to the device
  double multiply_seconds = 0;  // of one product, from the call to its end
  double store_seconds = 0;     // the product from the device
  double peak_flops = 0;
  double trip_seconds() const noexcept { return load_seconds + multiply_seconds + store_seconds; }
};

struct MatmulCase {
  std::size_t n = 0;
  std::string name, peak_is;
  bool on_gpu = false;
  double error = 0;
  double error_bound = 0;
  std::string problem;  // the product is wrong, or there was no memory for it; then it was not timed
  std::vector<MatmulSample> samples;
};

struct MatmulOptions {
  std::vector<std::size_t> sizes{256, 512, 1024, 2048};
  unsigned repeat = 5;
  double seconds = 0.05;  // of each sample, at least
};

// Cases by size, then in the order of the multipliers, which alternate. `done` is called after each size.
// Errors: invalid_argument (a size, its bounds), cancelled.
std::vector<MatmulCase> bench_matmul(const MatmulOptions& options,
                                     std::span<const std::unique_ptr<Multiplier>> multipliers,
                                     const std::atomic<bool>& cancel,
                                     const std::function<void(const std::vector<MatmulCase>&)>& done);

// Floating-point operations per second of `multiprocessors` at `clock_hz`: multiply and add count one each,
// dense, with float32 sums. 0: the compute capability is not known here, or does not have this arithmetic.
enum class GpuArithmetic : std::uint8_t { f32, tf32, f16 };
double gpu_peak_flops(GpuArithmetic kind, int compute_major, int compute_minor, int multiprocessors,
                      std::uint64_t clock_hz) noexcept;

namespace detail {
void add_cublas_multipliers(std::vector<std::unique_ptr<Multiplier>>& list,
                            std::string& absent);  // with CUDA only
}

}  // namespace shard::bench
