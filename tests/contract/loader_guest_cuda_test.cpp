// The loader as a guest in somebody's CUDA program: it never overwrites what a kernel still reads, breaks no
// capture of a CUDA graph, and touches no GPU but its own. Skipped, visibly, where there is no GPU.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "shard/loader/cuda_device.hpp"
#include "shard/loader/dlpack.hpp"
#include "support/expect_error.hpp"
#include "support/loader/loader_fixture.hpp"

namespace shard::testing {
namespace {

constexpr std::uint64_t kRows = 8;
constexpr std::uint64_t kRowBytes = 360;

template <class Function>
Function driver(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
  cudaGetDriverEntryPointByVersion(name, &function, 12'000, cudaEnableDefault, &found);
#else
  cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found);
#endif
  return reinterpret_cast<Function>(function);
}

bool has_context(int ordinal) {
  static const auto state = driver<CUresult (*)(CUdevice, unsigned*, int*)>("cuDevicePrimaryCtxGetState");
  unsigned flags = 0;
  int active = -1;
  EXPECT_EQ(state(ordinal, &flags, &active), CUDA_SUCCESS);
  return active != 0;
}

CUcontext current_context() {
  static const auto get = driver<CUresult (*)(CUcontext*)>("cuCtxGetCurrent");
  CUcontext context = nullptr;
  EXPECT_EQ(get(&context), CUDA_SUCCESS);
  return context;
}

// First in this program: nothing has selected a device before, and no context exists.
class CudaGuest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device on this machine";
    write_dataset(dir_.path(), {});
    data_ = Dataset::open(dir_.path());
  }
  static LoaderOptions options(TransportKind transport = TransportKind::automatic) {
    LoaderOptions options;
    options.batch_size = kRows;
    options.prefetch = 1;
    options.transport = transport;
    return options;
  }
  TempDir dir_;
  std::optional<Dataset> data_;
};

TEST_F(CudaGuest, MakesNoContextOnAnotherGpu) {
  if (cuda_device_count() < 2) GTEST_SKIP() << "one GPU only";
  ASSERT_FALSE(has_context(0));
  for (const TransportKind kind : {TransportKind::mapped, TransportKind::staged, TransportKind::resident}) {
    std::optional<Batch> kept;
    {
      auto device = make_cuda_device(1);
      Loader loader(*data_, device, options(kind));
      for (std::uint64_t epoch = 0; epoch < 3; ++epoch) run_epoch(*device, loader, epoch);
      std::thread([&] {  // a thread that never heard of CUDA
        for (auto batch = loader.next(); batch; batch = loader.next()) batch->wait();
        loader.start_epoch(7);
        kept = loader.next();
      })
          .join();
    }
    kept->wait();
    kept.reset();
    EXPECT_EQ(current_context(), nullptr) << "the thread was left with a context";
    EXPECT_FALSE(has_context(0)) << to_string(kind);
    EXPECT_TRUE(has_context(1));
  }
  int selected = -1;
  EXPECT_EQ(cudaGetDevice(&selected), cudaSuccess);
  EXPECT_EQ(selected, 0) << "the thread's device was changed";
}

TEST_F(CudaGuest, LeavesTheThreadAsItWas) {
  std::thread([&] {
    {
      auto device = make_cuda_device(0);
      Loader loader(*data_, device, options());
      run_epoch(*device, loader, 0);
      EXPECT_EQ(current_context(), nullptr);
    }
    EXPECT_EQ(current_context(), nullptr);
    auto mode = cudaStreamCaptureModeThreadLocal;
    ASSERT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
    EXPECT_EQ(mode, cudaStreamCaptureModeGlobal) << "the default";
    {
      auto device = make_cuda_device(0);
      Loader loader(*data_, device, options());
      run_epoch(*device, loader, 0);
    }
    mode = cudaStreamCaptureModeGlobal;
    ASSERT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
    EXPECT_EQ(mode, cudaStreamCaptureModeThreadLocal);
  }).join();
}

// Work on the default stream that comes late, and a batch that is dropped without a word.
TEST_F(CudaGuest, NeverChangesABatchUnderASlowKernel) {
  constexpr std::uint64_t kBatches = 1000;
  constexpr std::uint64_t kBytes = kRows * kRowBytes;
  auto device = make_cuda_device(0);
  Loader loader(*data_, device, options());
  const auto sink = device->allocate_device(kBatches * kBytes);
  const auto label_sink = device->allocate_device(kBatches * kRows * 8);
  std::vector<std::uint64_t> ids;
  std::uint64_t epoch = 0;
  for (std::uint64_t i = 0; i < kBatches; ++i) {
    auto batch = loader.next();
    if (!batch) {
      loader.start_epoch(++epoch);
      batch = loader.next();
    }
    ASSERT_TRUE(batch);
    ids.insert(ids.end(), batch->ids().begin(), batch->ids().end());
    DLManagedTensorVersioned* tensor = nullptr;
    if (i % 2 == 0)
      batch->wait_on(cuda_stream(nullptr));
    else
      tensor = batch->to_dlpack(batch->images(), cuda_stream(nullptr));
    ASSERT_EQ(cudaLaunchHostFunc(
                  nullptr, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }, nullptr),
              cudaSuccess);
    ASSERT_EQ(cudaMemcpyAsync(sink->data() + i * kBytes, batch->images().data, kBytes,
                              cudaMemcpyDeviceToDevice, nullptr),
              cudaSuccess);
    ASSERT_EQ(cudaMemcpyAsync(label_sink->data() + i * kRows * 8, batch->labels().data(), kRows * 8,
                              cudaMemcpyHostToDevice, nullptr),
              cudaSuccess);
    batch.reset();
    if (tensor != nullptr) tensor->deleter(tensor);
  }
  std::vector<std::byte> seen(kBatches * kBytes);
  std::vector<std::uint64_t> labels(kBatches * kRows);
  ASSERT_EQ(cudaMemcpy(seen.data(), sink->data(), seen.size(), cudaMemcpyDeviceToHost), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(labels.data(), label_sink->data(), labels.size() * 8, cudaMemcpyDeviceToHost),
            cudaSuccess);
  std::uint64_t changed = 0;
  std::uint64_t changed_labels = 0;
  for (std::uint64_t i = 0; i < ids.size(); ++i) {
    if (std::memcmp(sample_bytes(ids[i], kRowBytes).data(), seen.data() + i * kRowBytes, kRowBytes) != 0)
      ++changed;
    if (labels[i] != 1000 + ids[i]) ++changed_labels;
  }
  EXPECT_EQ(changed, 0U);
  EXPECT_EQ(changed_labels, 0U);
}

// A thread captures in mode global, the default, while loaders start, run and end beside it.
TEST_F(CudaGuest, BreaksNoCaptureOfACudaGraph) {
  auto first = make_cuda_device(0);
  const auto memory = first->allocate_device(1 << 20);
  std::atomic<int> captured{0};
  std::string failure;
  std::thread capturing([&] {
    cudaStream_t stream = nullptr;
    const auto ok = [&](cudaError_t error, const char* what) {
      if (error != cudaSuccess && failure.empty())
        failure = std::string(what) + ": " + cudaGetErrorName(error);
      return error == cudaSuccess;
    };
    ok(cudaSetDevice(0), "cudaSetDevice");
    ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    for (; captured < 100 && failure.empty(); ++captured) {
      cudaGraph_t graph = nullptr;
      if (!ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin")) break;
      for (int i = 0; i < 10; ++i) {
        ok(cudaMemsetAsync(memory->data(), i, 1 << 20, stream), "cudaMemsetAsync");
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      if (!ok(cudaStreamEndCapture(stream, &graph), "end")) break;
      cudaGraphDestroy(graph);
    }
    cudaStreamDestroy(stream);
    captured = 100;
  });
  int loaders = 0;
  std::string ours;
  while (captured < 100 && ours.empty()) {
    for (const TransportKind kind : {TransportKind::mapped, TransportKind::staged, TransportKind::resident}) {
      try {
        auto device = make_cuda_device(0);
        Loader loader(*data_, device, options(kind));
        for (std::uint64_t epoch = 0; epoch < 2; ++epoch) run_epoch(*device, loader, epoch);
        loader.start_epoch(2);
        auto batch = loader.next();
        if (!batch) throw Error(ErrorCode::corrupt, "an epoch without a batch");
        batch->wait_on(cuda_stream(nullptr));
        ++loaders;
      } catch (const Error& error) {
        ours = error.what();
      }
    }
  }
  capturing.join();
  EXPECT_EQ(failure, "");
  EXPECT_EQ(ours, "");
  EXPECT_GT(loaders, 0);
}

TEST_F(CudaGuest, SaysWhenABatchDiesOnACapturingStream) {
  auto device = make_cuda_device(0);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  const auto memory = device->allocate_device(64);
  {
    Loader loader(*data_, device, options());
    auto batch = loader.next();
    batch->wait_on(cuda_stream(stream));
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    ASSERT_EQ(cudaMemsetAsync(memory->data(), 1, 64, stream), cudaSuccess);
    auto other = loader.next();
    EXPECT_SHARD_ERROR(other->wait_on(cuda_stream(stream)), ErrorCode::invalid_argument,
                       "captures a CUDA graph");
    other.reset();  // that stream is not its concern
    batch.reset();
    EXPECT_SHARD_ERROR(loader.next(), ErrorCode::invalid_argument, "captures a CUDA graph");
    EXPECT_SHARD_ERROR(loader.next(), ErrorCode::invalid_argument, "batch 0 of epoch 0 cannot be released");
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess) << "the capture is whole";
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }
  cudaStreamDestroy(stream);
}

}  // namespace
}  // namespace shard::testing
