#include "commands/matmul/gemm.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <vector>

#include <fmt/core.h>

#include "base/thread_pool.hpp"
#include "commands/matmul/gemm_kernels.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

constexpr std::size_t kDepth = 256;        // of a block: a panel of b stays in the first cache
constexpr std::size_t kRowPanels = 8;      // of a task: its block of a stays in the second cache
constexpr std::size_t kAlone = 96;         // rows that one thread multiplies
constexpr std::size_t kMostColumns = 256;  // of a task

std::size_t parts(std::size_t n, std::size_t of) { return (n + of - 1) / of; }

// Of one thread; kept for the next task.
float* scratch(std::size_t floats) {
  thread_local std::vector<float> memory;
  if (memory.size() < floats) memory.resize(floats);
  return memory.data();
}

}  // namespace

struct Gemm::Packed {
  GemmKernels kernels = gemm_kernels();
  std::vector<float> b;  // by blocks of depth, then by panels of columns

  std::size_t column_panels(std::size_t n) const { return parts(n, kernels.columns); }
  float* panel(std::size_t n, std::size_t k_begin, std::size_t index) {
    const std::size_t depth = std::min(kDepth, n - k_begin);
    return b.data() + k_begin * column_panels(n) * kernels.columns + index * depth * kernels.columns;
  }
  void pack_b(std::size_t n, const float* source, std::size_t index) {
    const std::size_t first = index * kernels.columns;
    const std::size_t width = std::min(kernels.columns, n - first);
    for (std::size_t k_begin = 0; k_begin < n; k_begin += kDepth) {
      float* out = panel(n, k_begin, index);
      for (std::size_t k = k_begin; k < std::min(n, k_begin + kDepth); ++k, out += kernels.columns) {
        std::copy_n(source + k * n + first, width, out);
        std::fill(out + width, out + kernels.columns, 0.0F);
      }
    }
  }
  void pack_a(std::size_t n, const float* source, std::size_t row, std::size_t k_begin, std::size_t depth,
              float* out) const {
    const std::size_t rows = row < n ? std::min(kernels.rows, n - row) : 0;
    for (std::size_t r = 0; r < kernels.rows; ++r)
      for (std::size_t k = 0; k < depth; ++k)
        out[k * kernels.rows + r] = r < rows ? source[(row + r) * n + k_begin + k] : 0.0F;
  }
  // Tiles at the edge are computed whole, beside, and copied as far as they reach.
  void tile(std::size_t n, std::size_t row, std::size_t column, std::size_t depth, const float* a_panel,
            const float* b_panel, float* c, bool add) const {
    float* const target = c + row * n + column;
    const std::size_t rows = std::min(kernels.rows, n - row);
    const std::size_t columns = std::min(kernels.columns, n - column);
    if (rows == kernels.rows && columns == kernels.columns)
      return kernels.tile(depth, a_panel, b_panel, target, n, add);
    thread_local std::vector<float> whole;
    whole.resize(kernels.rows * kernels.columns);
    kernels.tile(depth, a_panel, b_panel, whole.data(), kernels.columns, false);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t x = 0; x < columns; ++x) {
        const float value = whole[r * kernels.columns + x];
        target[r * n + x] = add ? target[r * n + x] + value : value;
      }
  }
  void block(std::size_t n, const float* a, float* c, std::size_t row_begin, std::size_t panel_begin,
             std::size_t panel_end) {
    float* const packed_a = scratch(kRowPanels * kernels.rows * kDepth);
    for (std::size_t k_begin = 0; k_begin < n; k_begin += kDepth) {
      const std::size_t depth = std::min(kDepth, n - k_begin);
      for (std::size_t p = 0; p < kRowPanels; ++p)
        pack_a(n, a, row_begin + p * kernels.rows, k_begin, depth, packed_a + p * kernels.rows * depth);
      for (std::size_t j = panel_begin; j < panel_end; ++j) {
        const float* const b_panel = panel(n, k_begin, j);
        for (std::size_t p = 0; p < kRowPanels && row_begin + p * kernels.rows < n; ++p)
          tile(n, row_begin + p * kernels.rows, j * kernels.columns, depth,
               packed_a + p * kernels.rows * depth, b_panel, c, k_begin > 0);
      }
    }
  }
};

Gemm::Gemm(unsigned threads)
    : threads_(threads), pool_(std::make_unique<ThreadPool>(threads)), packed_(std::make_unique<Packed>()) {}
Gemm::~Gemm() = default;

void Gemm::multiply(std::size_t n, std::span<const float> a, std::span<const float> b, std::span<float> c) {
  if (a.size() != n * n || b.size() != n * n || c.size() != n * n)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a product of {}x{} matrices of {}, {} and {} values", n, n, a.size(), b.size(),
                            c.size()));
  if (n == 0) return;
  Packed& packed = *packed_;
  const std::size_t panels = packed.column_panels(n);
  packed.b.resize(n * panels * packed.kernels.columns);
  run(n, panels, [&](std::size_t index) { packed.pack_b(n, b.data(), index); });
  const std::size_t task_rows = kRowPanels * packed.kernels.rows;
  const std::size_t task_panels = std::max<std::size_t>(1, kMostColumns / packed.kernels.columns);
  const std::size_t across = parts(panels, task_panels);
  run(n, parts(n, task_rows) * across, [&](std::size_t task) {
    const std::size_t first = task % across * task_panels;
    packed.block(n, a.data(), c.data(), task / across * task_rows, first,
                 std::min(panels, first + task_panels));
  });
}

// Waking threads takes longer than small products do.
template <class Body>
void Gemm::run(std::size_t n, std::size_t tasks, const Body& body) {
  if (threads_ > 1 && n > kAlone) return run_rows(*pool_, tasks, body);
  for (std::size_t task = 0; task < tasks; ++task) body(task);
}

double Gemm::peak_flops(double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr std::size_t kIterations = 100'000;
  std::vector<double> operations(threads_, 0);
  std::atomic<float> used{0};
  const auto begin = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  run_rows(*pool_, threads_, [&](std::size_t thread) {
    do {
      double done = 0;
      used = packed_->kernels.spin(kIterations, done);
      operations[thread] += done;
    } while (elapsed() < seconds);
  });
  double all = 0;
  for (const double one : operations) all += one;
  return all / elapsed();
}

std::string gemm_simd_target() { return gemm_kernels().target; }

}  // namespace shard::bench
