// BMP, PNM, AVIF, HEIC and JPEG XL, as far as the build reads them.
#include "image_row.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using shard::image::Format;
  const Format format = shard::image::detect_format({reinterpret_cast<const std::byte*>(data), size});
  if (format == Format::bmp || format == Format::pnm || format == Format::avif || format == Format::heic ||
      format == Format::jxl)
    shard::fuzz::decode_to_row(data, size, format);
  return 0;
}
