// What becomes baseline is what the kernels decode.
#include <cstdlib>

#include "image/codecs/transcode/jpeg_transcode.hpp"
#include "jpeg/index_builder.hpp"
#include "shard/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
  std::vector<std::byte> baseline;
  try {
    shard::image::TranscodeOptions options;
    options.max_pixels = 1 << 16;
    options.on_warning = static_cast<shard::image::OnWarning>(size % 3);
    baseline = shard::image::transcode_to_baseline(file, options);
  } catch (const shard::Error&) {
    return 0;
  }
  try {
    const shard::jpeg::Header header = shard::jpeg::parse_header(baseline);
    shard::jpeg::IndexBuilder builder;
    builder.build(baseline, header);
  } catch (const shard::Error& error) {
    // Sampling factors that the kernels do not take, colours that libjpeg guesses.
    if (error.code() != shard::ErrorCode::unsupported) std::abort();
  }
  return 0;
}
