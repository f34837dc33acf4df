// Any bytes as a mask: what is decoded is as the header says, and the nearest resize makes no value
// that it does not have.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>

#include "shard/image/preprocess.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shard;
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
  image::DecodeOptions decode;
  decode.max_pixels = 1 << 12;
  try {
    const image::WideInfo info = image::read_mask_info(file, decode.max_pixels);
    const image::WideImage mask = image::decode_mask(file, decode);
    if (info.channels != 1 || mask.info.channels != 1 || mask.info.dtype != info.dtype ||
        mask.info.width != info.width || mask.info.height != info.height)
      std::abort();
    image::PreprocessOptions options;
    options.dtype = info.dtype;
    options.channels = 1;
    options.filter = image::Filter::nearest;
    options.squash = image::Size{7, 5};
    options.crop.reset();
    std::vector<std::byte> sample(options.sample_spec().size_bytes());
    image::Preprocessor(options).run(mask.view(), sample);
    const std::size_t element = size_bytes(info.dtype);
    const auto values = [&](const std::vector<std::byte>& bytes) {
      std::set<std::uint16_t> found;
      for (std::size_t at = 0; at < bytes.size(); at += element) {
        std::uint16_t value = 0;
        std::memcpy(&value, &bytes[at], element);
        found.insert(value);
      }
      return found;
    };
    const auto all = values(mask.data);
    const auto some = values(sample);
    if (!std::includes(all.begin(), all.end(), some.begin(), some.end())) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
