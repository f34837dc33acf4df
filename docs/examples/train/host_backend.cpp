// The operations in plain C++. The innermost loops run along rows, so that the compiler vectorises them
// without leave to change the order of sums.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "backend.hpp"

namespace train {
namespace {

using Clock = std::chrono::steady_clock;

class HostBackend final : public Backend {
 public:
  HostBackend() : Backend(shard::make_host_device(2)) {}

  void wait_for(const shard::Batch& batch) override { batch.wait(); }

  void multiply(Matrix a, Matrix b, float* product) override {
    const std::size_t inner = a.columns;
    for (std::size_t i = 0; i < a.rows; ++i) {
      float* const row = product + i * b.columns;
      std::fill_n(row, b.columns, 0.0F);
      for (std::size_t k = 0; k < inner; ++k) {
        const float factor = a.transposed ? a.data[k * a.rows + i] : a.data[i * inner + k];
        if (b.transposed) {
          for (std::size_t j = 0; j < b.columns; ++j) row[j] += factor * b.data[j * inner + k];
        } else {
          const float* const other = b.data + k * b.columns;
          for (std::size_t j = 0; j < b.columns; ++j) row[j] += factor * other[j];
        }
      }
    }
  }

  void add_bias(float* y, std::size_t rows, std::size_t columns, const float* bias, bool relu) override {
    for (std::size_t i = 0; i < rows * columns; ++i) {
      y[i] += bias[i % columns];
      if (relu) y[i] = std::max(y[i], 0.0F);
    }
  }

  void relu_backward(float* gradient, const float* output, std::size_t count) override {
    for (std::size_t i = 0; i < count; ++i)
      if (output[i] <= 0) gradient[i] = 0;
  }

  void softmax_loss(Matrix logits, const std::int64_t* labels, float* gradient) override {
    for (std::size_t i = 0; i < logits.rows; ++i) {
      const float* const x = logits.data + i * logits.columns;
      const auto label = static_cast<std::size_t>(labels[i]);
      const auto best = static_cast<std::size_t>(std::max_element(x, x + logits.columns) - x);
      float sum = 0;
      for (std::size_t j = 0; j < logits.columns; ++j) sum += std::exp(x[j] - x[best]);
      totals_.loss += static_cast<double>(std::log(sum) - (x[label] - x[best]));
      totals_.correct += best == label ? 1 : 0;
      totals_.samples += 1;
      if (gradient == nullptr) continue;
      for (std::size_t j = 0; j < logits.columns; ++j) {
        const float p = std::exp(x[j] - x[best]) / sum;
        gradient[i * logits.columns + j] = (p - (j == label ? 1.0F : 0.0F)) / static_cast<float>(logits.rows);
      }
    }
  }

  void sum_rows(Matrix y, float* sums) override {
    std::fill_n(sums, y.columns, 0.0F);
    for (std::size_t i = 0; i < y.rows; ++i)
      for (std::size_t j = 0; j < y.columns; ++j) sums[j] += y.data[i * y.columns + j];
  }

  void sgd(float* weights, float* velocity, const float* gradient, std::size_t count, float rate,
           float momentum) override {
    for (std::size_t i = 0; i < count; ++i) {
      velocity[i] = momentum * velocity[i] + gradient[i];
      weights[i] -= rate * velocity[i];
    }
  }

  Totals totals() override { return totals_; }
  void set_totals(const Totals& totals) override { totals_ = totals; }

  void mark() override { marks_.push_back(Clock::now()); }
  std::vector<double> take_marks_ms() override {
    std::vector<double> times;
    for (const Clock::time_point mark : marks_)
      times.push_back(std::chrono::duration<double, std::milli>(mark - marks_.front()).count());
    marks_.clear();
    return times;
  }

 private:
  Totals totals_;
  std::vector<Clock::time_point> marks_;
};

}  // namespace

std::unique_ptr<Backend> make_host_backend() { return std::make_unique<HostBackend>(); }

}  // namespace train
