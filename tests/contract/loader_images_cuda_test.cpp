// What loader_images_contract.hpp says, on a CUDA device; skipped, visibly, where there is none.
#include "shard/loader/cuda_device.hpp"
#include "support/loader/loader_images_contract.hpp"

namespace shard::testing {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LoaderContract);  // of the headers

namespace {

std::shared_ptr<Device> cuda_first() { return cuda_device_count() > 0 ? make_cuda_device(0) : nullptr; }
INSTANTIATE_TEST_SUITE_P(Cuda, LoaderOfImages, ::testing::Values(&cuda_first));

}  // namespace
}  // namespace shard::testing
