// The property on a CUDA device: labels, ids, masks and the choice of pixels equal, values within one step of
// their type of what the host computes.
#include "shard/loader/cuda_device.hpp"
#include "support/loader/same_batches.hpp"

namespace shard::testing {
namespace {

std::shared_ptr<Device> cuda(Random&) {
  static const std::shared_ptr<Device> device = cuda_device_count() > 0 ? make_cuda_device(0) : nullptr;
  return device;
}
void check_device(Device& device) { device.check(); }

INSTANTIATE_TEST_SUITE_P(Cuda, SameBatches,
                         ::testing::Values(DeviceUnderTest{"cuda", &cuda, &check_device, 1, 100, 100}),
                         [](const auto& suite) { return std::string(suite.param.name); });

}  // namespace
}  // namespace shard::testing
