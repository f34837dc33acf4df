// Any bytes as a file whose channels and bits are kept: decoded, resized and written as a sample.
// The last byte chooses the dtype.
#include <cstdlib>

#include "shard/image/preprocess.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shard;
  if (size == 0) return 0;
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size - 1);
  static image::Decoder decoder;
  image::DecodeOptions decode;
  decode.max_pixels = 1 << 12;
  decode.page = data[size - 1] >> 6U;
  try {
    const image::WideInfo info = image::read_wide_info(file, decode.max_pixels, decode.page);
    const image::WideImage decoded = image::decode_wide(decoder, file, decode);
    if (decoded.info.channels != info.channels || decoded.info.dtype != info.dtype ||
        decoded.info.width != info.width || decoded.info.height != info.height)
      std::abort();
    image::PreprocessOptions options;
    constexpr DType kDTypes[] = {DType::u8, DType::u16, DType::f16, DType::f32};
    options.dtype = kDTypes[data[size - 1] % 4];
    options.channels = info.channels;
    options.squash = image::Size{7, 5};
    options.crop.reset();
    image::Preprocessor preprocessor(options);
    std::vector<std::byte> sample(options.sample_spec().size_bytes());
    preprocessor.run(decoded.view(), sample);
  } catch (const Error&) {
  }
  return 0;
}
