#include <fmt/format.h>

#include "libjpeg/encode.hpp"
#include "shard/error.hpp"
#include "shard/image/decode.hpp"

namespace shard::image {
namespace {

libjpeg::Sampling sampling_of(int subsampling) {
  switch (subsampling) {
    case 444:
      return {1, 1};
    case 422:
      return {2, 1};
    case 420:
      return {2, 2};
    default:
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("JPEG subsampling {}: use 444, 422 or 420", subsampling));
  }
}

}  // namespace

std::vector<std::byte> encode_jpeg(const RgbView& image, int quality, int subsampling) {
  return libjpeg::encode({image.data, image.width, image.height, 3, image.stride_bytes}, quality,
                         sampling_of(subsampling));
}

}  // namespace shard::image
