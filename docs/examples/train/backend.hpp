// Backend: the few operations that a small network is made of, in plain C++ and on CUDA, by the same
// formulas.
//
// Numbers are float32 in the device's memory. Work is queued in one stream and runs in order (CUDA), or is
// done when the call returns (host). Both give the same bits each time they run; the two differ from each
// other by the order in which sums are rounded. For one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "shard/loader/device.hpp"
#include "shard/loader/loader.hpp"

namespace train {

// A view of a matrix in C order, or of its transpose.
struct Matrix {
  const float* data = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;
  bool transposed = false;  // stored as [columns, rows]
  Matrix t() const { return {data, columns, rows, !transposed}; }
};

// Sums over the samples that softmax_loss() has seen.
struct Totals {
  double loss = 0;
  double correct = 0;
  double samples = 0;
};

class Backend {
 public:
  explicit Backend(std::shared_ptr<shard::Device> device)
      : device_(std::move(device)), stream_(device_->create_stream()) {}
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  const std::shared_ptr<shard::Device>& device() const { return device_; }
  // Before the operations below on the batch's memory: orders them after its bytes.
  virtual void wait_for(const shard::Batch& batch) = 0;
  std::unique_ptr<shard::Block> allocate(std::size_t floats) {
    return device_->allocate_device(floats * sizeof(float));
  }
  // Both wait for all work before them.
  void upload(float* target, std::span<const float> source);
  void download(std::span<float> target, const float* source);

  virtual void multiply(Matrix a, Matrix b, float* product) = 0;
  virtual void add_bias(float* y, std::size_t rows, std::size_t columns, const float* bias, bool relu) = 0;
  virtual void relu_backward(float* gradient, const float* output, std::size_t count) = 0;
  // Adds to totals(); gradient = d (mean loss of the rows) / d logits. Null: only the totals.
  virtual void softmax_loss(Matrix logits, const std::int64_t* labels, float* gradient) = 0;
  virtual void sum_rows(Matrix y, float* sums) = 0;  // [columns]
  // velocity = momentum * velocity + gradient; weights -= rate * velocity
  virtual void sgd(float* weights, float* velocity, const float* gradient, std::size_t count, float rate,
                   float momentum) = 0;

  virtual Totals totals() = 0;  // waits for all work
  virtual void set_totals(const Totals& totals) = 0;

  virtual void mark() = 0;  // a point in time of the stream
  // The marks made since the last call, in ms after the first of them. Waits for the last one.
  virtual std::vector<double> take_marks_ms() = 0;

 protected:
  shard::Stream& stream() const { return *stream_; }

 private:
  std::shared_ptr<shard::Device> device_;
  std::unique_ptr<shard::Stream> stream_;
};

std::unique_ptr<Backend> make_host_backend();
std::unique_ptr<Backend> make_cuda_backend(int ordinal);  // in a build with CUDA and cuBLAS

}  // namespace train
