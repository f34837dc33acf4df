#include "support/loader/loader_leaks.hpp"
#include "support/device/limited_device.hpp"

namespace shard::testing {
namespace {

std::shared_ptr<Device> host() { return make_host_device(2); }
std::shared_ptr<Device> gpu_like() { return make_gpu_like_device(1); }

INSTANTIATE_TEST_SUITE_P(Devices, LoaderLeaks,
                         ::testing::Values(LeakCase{"host", &host, false},
                                           LeakCase{"gpu_like", &gpu_like, false}),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace shard::testing
