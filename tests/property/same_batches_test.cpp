// The property on the host device, on one that stands for a GPU, and on the step device, which also finds
// every missing order between streams.
#include "support/loader/same_batches.hpp"
#include "support/device/limited_device.hpp"
#include "support/device/step_device.hpp"

namespace shard::testing {
namespace {

std::shared_ptr<Device> host(Random& random) { return make_host_device(random.between(1, 3)); }
std::shared_ptr<Device> gpu_like(Random& random) { return make_gpu_like_device(random.between(1, 3)); }
std::shared_ptr<Device> step(Random& random) {
  auto device = std::make_shared<StepDevice>();
  device->run_freely(random.between(0, 1000));
  return device;
}

void check_nothing(Device&) {}
void check_counts(Device& device) {
  for (DeviceCall call : kDeviceCalls)
    EXPECT_EQ(static_cast<LimitedDevice&>(device).alive(call), 0) << to_string(call);
  EXPECT_EQ(static_cast<LimitedDevice&>(device).faults(), std::vector<std::string>{});
}
void check_races(Device& device) {
  EXPECT_EQ(static_cast<StepDevice&>(device).races(), std::vector<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(Devices, SameBatches,
                         ::testing::Values(DeviceUnderTest{"host", &host, &check_nothing, 0, 300, 25},
                                           DeviceUnderTest{"gpu_like", &gpu_like, &check_counts, 0, 150, 15},
                                           DeviceUnderTest{"step", &step, &check_races, 0, 100, 10}),
                         [](const auto& suite) { return std::string(suite.param.name); });

// The comparison itself: off by one step is seen where none is allowed, and by two where one is.
TEST(SameBatchesComparison, CountsStepsOfTheType) {
  const auto steps = [](DType dtype, std::uint32_t a, std::uint32_t b) {
    return steps_between(dtype, reinterpret_cast<const std::byte*>(&a),
                         reinterpret_cast<const std::byte*>(&b));
  };
  EXPECT_EQ(steps(DType::u8, 7, 9), 2);
  EXPECT_EQ(steps(DType::f16, 0x3C00, 0x3BFF), 1);
  EXPECT_EQ(steps(DType::f16, 0x8001, 0x0001), 2);
  EXPECT_EQ(steps(DType::f32, 0x3F800000, 0x3F800002), 2);
  EXPECT_EQ(steps(DType::bf16, 0x3F80, 0x3F80), 0);
}

}  // namespace
}  // namespace shard::testing
