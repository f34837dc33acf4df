// What loader_images_contract.hpp says, on a device that stands for a GPU.
#include "support/loader/loader_images_contract.hpp"

namespace shard::testing {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LoaderContract);  // of the headers

namespace {

// It copies from pinned memory only, as a GPU.
std::shared_ptr<Device> with_own_memory() {
  return std::make_shared<LimitedDevice>(make_host_device(2), false);
}
INSTANTIATE_TEST_SUITE_P(OwnMemory, LoaderOfImages, ::testing::Values(&with_own_memory));

}  // namespace
}  // namespace shard::testing
