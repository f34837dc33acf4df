// JpegDecoder on a CUDA device; skipped, visibly, where there is none.
#include "shard/loader/cuda_device.hpp"
#include "support/jpeg/jpeg_decoder_contract.hpp"

namespace shard::testing {
namespace {

std::shared_ptr<Device> cuda_first() { return cuda_device_count() > 0 ? make_cuda_device(0) : nullptr; }
INSTANTIATE_TEST_SUITE_P(Cuda, JpegDecoderContract, ::testing::Values(&cuda_first));

}  // namespace
}  // namespace shard::testing
