#include "shard/convert/decoding.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "convert/plan/advice.hpp"

namespace shard::convert {

image::DecodeOptions decode_options(const Options& options, const std::atomic<bool>* cancel) {
  image::DecodeOptions decode;
  decode.max_pixels = options.max_pixels;
  decode.on_warning = options.on_warning;
  decode.cancel = cancel;
  decode.depth = options.depth;
  if (options.fast_decode) decode.fast_min_short_side = fast_decode_side(options.preprocess);
  return decode;
}

std::uint32_t fast_decode_side(const image::PreprocessOptions& options) {
  return options.squash ? std::max(options.squash->width, options.squash->height) : options.resize_short;
}

std::string reject_reason(const Error& error) {
  const bool pixels = dynamic_cast<const image::TooManyPixels*>(&error) != nullptr;
  return fmt::format("{}{}", error.what(), pixels ? kPixelBoundAdvice : "");
}

}  // namespace shard::convert
