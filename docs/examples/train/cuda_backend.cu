// The operations on CUDA: cuBLAS multiplies, small kernels do the rest. No atomics, so that sums have one
// order.
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <string>

#include "backend.hpp"
#include "shard/error.hpp"
#include "shard/loader/cuda_device.hpp"

namespace train {
namespace {

constexpr unsigned kThreads = 256;

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    throw shard::Error(shard::ErrorCode::io, std::string("CUDA: ") + what + ": " + cudaGetErrorString(error));
}
void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw shard::Error(shard::ErrorCode::io,
                       std::string("cuBLAS: ") + what + ": " + cublasGetStatusString(status));
}

__device__ std::size_t thread_index() { return std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; }
unsigned blocks(std::size_t count) { return static_cast<unsigned>((count + kThreads - 1) / kThreads); }

__global__ void add_bias_kernel(float* y, std::size_t count, std::size_t columns, const float* bias,
                                bool relu) {
  const std::size_t i = thread_index();
  if (i >= count) return;
  const float sum = y[i] + bias[i % columns];
  y[i] = relu ? fmaxf(sum, 0.0F) : sum;
}

__global__ void relu_backward_kernel(float* gradient, const float* output, std::size_t count) {
  const std::size_t i = thread_index();
  if (i < count && output[i] <= 0) gradient[i] = 0;
}

// One block; each thread takes rows, then the first one adds up what they found.
__global__ void softmax_loss_kernel(Matrix logits, const std::int64_t* labels, float* gradient,
                                    Totals* totals) {
  __shared__ double losses[kThreads];
  __shared__ double hits[kThreads];
  double loss = 0;
  double correct = 0;
  for (std::size_t i = threadIdx.x; i < logits.rows; i += kThreads) {
    const float* const x = logits.data + i * logits.columns;
    const auto label = static_cast<std::size_t>(labels[i]);
    std::size_t best = 0;
    for (std::size_t j = 1; j < logits.columns; ++j)
      if (x[j] > x[best]) best = j;
    float sum = 0;
    for (std::size_t j = 0; j < logits.columns; ++j) sum += expf(x[j] - x[best]);
    loss += static_cast<double>(logf(sum) - (x[label] - x[best]));
    correct += best == label ? 1 : 0;
    if (gradient == nullptr) continue;
    for (std::size_t j = 0; j < logits.columns; ++j) {
      const float p = expf(x[j] - x[best]) / sum;
      gradient[i * logits.columns + j] = (p - (j == label ? 1.0F : 0.0F)) / static_cast<float>(logits.rows);
    }
  }
  losses[threadIdx.x] = loss;
  hits[threadIdx.x] = correct;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (unsigned t = 0; t < kThreads; ++t) {
    totals->loss += losses[t];
    totals->correct += hits[t];
  }
  totals->samples += static_cast<double>(logits.rows);
}

__global__ void sum_rows_kernel(Matrix y, float* sums) {
  const std::size_t j = thread_index();
  if (j >= y.columns) return;
  float sum = 0;
  for (std::size_t i = 0; i < y.rows; ++i) sum += y.data[i * y.columns + j];
  sums[j] = sum;
}

__global__ void sgd_kernel(float* weights, float* velocity, const float* gradient, std::size_t count,
                           float rate, float momentum) {
  const std::size_t i = thread_index();
  if (i >= count) return;
  velocity[i] = momentum * velocity[i] + gradient[i];
  weights[i] -= rate * velocity[i];
}

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(int ordinal)
      : Backend(shard::make_cuda_device(ordinal)), totals_(device()->allocate_device(sizeof(Totals))) {
    check(cudaSetDevice(ordinal), "cudaSetDevice");
    set_totals({});
    check(cublasCreate(&cublas_), "cublasCreate");
    check(cublasSetStream(cublas_, cuda_stream()), "cublasSetStream");
  }
  ~CudaBackend() override {
    if (cublas_ != nullptr) cublasDestroy(cublas_);
    for (cudaEvent_t event : events_) cudaEventDestroy(event);
  }

  void wait_for(const shard::Batch& batch) override { batch.wait_on(stream()); }

  // cuBLAS reads matrices in Fortran's order, which is ours transposed: so product' = b' a'.
  void multiply(Matrix a, Matrix b, float* product) override {
    const auto size = [](std::size_t n) { return static_cast<int>(n); };
    const auto stride = [](const Matrix& m) { return static_cast<int>(m.transposed ? m.rows : m.columns); };
    const auto op = [](const Matrix& m) { return m.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
    const float one = 1;
    const float zero = 0;
    check(cublasSgemm(cublas_, op(b), op(a), size(b.columns), size(a.rows), size(a.columns), &one, b.data,
                      stride(b), a.data, stride(a), &zero, product, size(b.columns)),
          "cublasSgemm");
  }
  void add_bias(float* y, std::size_t rows, std::size_t columns, const float* bias, bool relu) override {
    add_bias_kernel<<<blocks(rows * columns), kThreads, 0, cuda_stream()>>>(y, rows * columns, columns, bias,
                                                                            relu);
    check(cudaGetLastError(), "add_bias");
  }
  void relu_backward(float* gradient, const float* output, std::size_t count) override {
    relu_backward_kernel<<<blocks(count), kThreads, 0, cuda_stream()>>>(gradient, output, count);
    check(cudaGetLastError(), "relu_backward");
  }
  void softmax_loss(Matrix logits, const std::int64_t* labels, float* gradient) override {
    softmax_loss_kernel<<<1, kThreads, 0, cuda_stream()>>>(logits, labels, gradient, device_totals());
    check(cudaGetLastError(), "softmax_loss");
  }
  void sum_rows(Matrix y, float* sums) override {
    sum_rows_kernel<<<blocks(y.columns), kThreads, 0, cuda_stream()>>>(y, sums);
    check(cudaGetLastError(), "sum_rows");
  }
  void sgd(float* weights, float* velocity, const float* gradient, std::size_t count, float rate,
           float momentum) override {
    sgd_kernel<<<blocks(count), kThreads, 0, cuda_stream()>>>(weights, velocity, gradient, count, rate,
                                                              momentum);
    check(cudaGetLastError(), "sgd");
  }

  Totals totals() override {
    Totals totals;
    copy(&totals, device_totals(), sizeof totals, cudaMemcpyDeviceToHost);
    return totals;
  }
  void set_totals(const Totals& totals) override {
    copy(device_totals(), &totals, sizeof totals, cudaMemcpyHostToDevice);
  }

  void mark() override {
    if (marks_ == events_.size()) {
      events_.push_back(nullptr);
      check(cudaEventCreate(&events_.back()), "cudaEventCreate");
    }
    check(cudaEventRecord(events_[marks_], cuda_stream()), "cudaEventRecord");
    ++marks_;
  }
  std::vector<double> take_marks_ms() override {
    std::vector<double> times(marks_);
    if (marks_ > 0) check(cudaEventSynchronize(events_[marks_ - 1]), "training");
    for (std::size_t i = 0; i < marks_; ++i) {
      float ms = 0;
      check(cudaEventElapsedTime(&ms, events_[0], events_[i]), "cudaEventElapsedTime");
      times[i] = static_cast<double>(ms);
    }
    marks_ = 0;
    return times;
  }

 private:
  cudaStream_t cuda_stream() const { return static_cast<cudaStream_t>(stream().native()); }
  void copy(void* target, const void* source, std::size_t size_bytes, cudaMemcpyKind kind) const {
    check(cudaMemcpyAsync(target, source, size_bytes, kind, cuda_stream()), "cudaMemcpyAsync");
    check(cudaStreamSynchronize(cuda_stream()), "training");
  }
  Totals* device_totals() const { return reinterpret_cast<Totals*>(totals_->data()); }

  std::unique_ptr<shard::Block> totals_;
  cublasHandle_t cublas_ = nullptr;
  std::vector<cudaEvent_t> events_;
  std::size_t marks_ = 0;  // events_ in use
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(int ordinal) { return std::make_unique<CudaBackend>(ordinal); }

}  // namespace train
