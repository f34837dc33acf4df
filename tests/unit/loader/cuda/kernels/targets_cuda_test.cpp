// The CUDA kernels of targets against the host, bit for bit. Skips where there is no device.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include "cuda/kernels/targets.hpp"
#include "support/transform/random_targets.hpp"
#include "transform/targets/host_targets.hpp"

namespace shard {
namespace {

using testing::Random;
using testing::RandomTargets;

void require_done(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

struct CudaFree {
  void operator()(std::byte* memory) const { cudaFree(memory); }
};
using CudaBytes = std::unique_ptr<std::byte, CudaFree>;

CudaBytes cuda_bytes(const std::vector<std::byte>& content) {
  void* memory = nullptr;
  require_done(cudaMalloc(&memory, content.size() + 16));
  CudaBytes bytes(static_cast<std::byte*>(memory));
  require_done(cudaMemcpy(memory, content.data(), content.size(), cudaMemcpyHostToDevice));
  return bytes;
}

class TargetsCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no CUDA device";
  }

  static std::vector<std::byte> on_host(const RandomTargets& random) {
    std::vector<std::byte> target(random.target_bytes());
    std::vector<std::byte> scratch(random.target_bytes());
    targets::follow_rows(random.work(target.data(), scratch.data()), 0, random.samples.size());
    return target;
  }

  static std::vector<std::byte> on_device(RandomTargets random) {
    std::vector<CudaBytes> samples;
    for (std::size_t i = 0; i < random.samples.size(); ++i) {
      samples.push_back(cuda_bytes(random.samples[i]));
      random.sources[i] = samples.back().get();
    }
    std::vector<std::byte> result(random.target_bytes(), std::byte{0xEE});
    const CudaBytes target = cuda_bytes(result);
    const CudaBytes buffer = cuda_bytes(result);
    const TargetWork work = random.work(target.get(), buffer.get());
    void* pinned = nullptr;
    require_done(cudaMallocHost(&pinned, targets_scratch_bytes(work) + 16));
    const CudaBytes scratch = cuda_bytes(std::vector<std::byte>(targets_scratch_bytes(work)));
    launch_targets(work, static_cast<std::byte*>(pinned), scratch.get(), nullptr);
    require_done(cudaDeviceSynchronize());
    require_done(cudaFreeHost(pinned));
    require_done(cudaMemcpy(result.data(), target.get(), result.size(), cudaMemcpyDeviceToHost));
    return result;
  }
};

TEST_F(TargetsCuda, GivesTheBitsOfTheHost) {
  Random random(21);
  for (int i = 0; i < 2000; ++i) {
    const RandomTargets work = testing::random_targets(random, i % 10 == 0 ? 300 : 64, i % 3 == 0);
    const std::vector<std::byte> host = on_host(work);
    const std::vector<std::byte> device = on_device(work);
    for (std::size_t at = 0; at < host.size(); ++at)
      ASSERT_EQ(host[at], device[at]) << "byte " << at << " of " << host.size() << ": " << work.describe();
  }
}

}  // namespace
}  // namespace shard
