#include "shard/loader/cuda_device.hpp"
#include "support/loader/loader_leaks.hpp"

namespace shard::testing {
namespace {

// One device for all cycles: its context is the process's.
std::shared_ptr<Device> cuda() {
  static const std::shared_ptr<Device> device = cuda_device_count() > 0 ? make_cuda_device(0) : nullptr;
  return device;
}

INSTANTIATE_TEST_SUITE_P(Cuda, LoaderLeaks, ::testing::Values(LeakCase{"cuda", &cuda, true}),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace shard::testing
