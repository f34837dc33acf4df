#include "transform/augment/host_augment.hpp"

#include <fmt/format.h>

#include "shard/error.hpp"
#include "transform/augment/interpreter.hpp"
#include "transform/check_work.hpp"
#include "transform/host_transform.hpp"

namespace shard::augment {

SampleSpec pixels_of(const SampleSpec& delivered) noexcept {
  SampleSpec pixels = delivered;
  pixels.dtype = DType::u8;
  pixels.layout = Layout::nhwc;
  return pixels;
}

void check_programs(const TransformWork& work) {
  auto refuse = [](const std::string& message) {
    throw Error(ErrorCode::invalid_argument, "transform: " + message);
  };
  if (work.stored.dtype != DType::u8)
    refuse(fmt::format("programs need samples stored as u8, not {}", to_string(work.stored.dtype)));
  if (work.begins.size() != work.sources.size() + 1)
    refuse(fmt::format("{} sources and {} begins of programs; there must be one more", work.sources.size(),
                       work.begins.size()));
  for (std::size_t row = 0; row < work.sources.size(); ++row)
    if (work.begins[row] > work.begins[row + 1] || work.begins[row + 1] > work.instructions.size())
      refuse(fmt::format("row {}: its program is instructions {} to {} of {}", row, work.begins[row],
                         work.begins[row + 1], work.instructions.size()));
}

SampleCrop own_crop(SampleCrop crop) noexcept {
  crop.row = 0;
  crop.column = 0;
  return crop;
}

SampleCrop whole_crop(const SampleSize& size) noexcept {
  return {0, 0, size.width, size.height, false, size.height, size.width, 0, 0};
}

Passes::Passes(const TransformWork& work) : to_pixels(work) {
  to_pixels.delivered = pixels_of(work.delivered);
  to_pixels.normalize = false;
  to_pixels.instructions = {};
  to_pixels.begins = {};
  to_pixels.pairs = {};
  to_pixels.patch = 0;
  to_pixels.tokens = {};
  to_pixels.padded = false;
  to_sample = to_pixels;
  to_sample.stored = to_pixels.delivered;
  to_sample.delivered = work.delivered;
  to_sample.normalize = work.normalize;
  to_sample.frame_bytes = {};
  to_sample.files = {};
  to_sample.broken = nullptr;
  to_sample.unpacked = nullptr;
  to_sample.sizes = {};
  to_sample.exact = own_sizes(work);
  to_sample.filter = ResizeFilter::bilinear;  // the quickest
  to_sample.patch = work.patch;
  if (own_sizes(work)) to_sample.stored = to_sample.stored.sized(0, 0);
  to_pixels.target_is_read_soon = true;
}

void augment_rows(const TransformWork& work, std::size_t first, std::size_t last) {
  static thread_local Interpreter interpreter;
  auto [to_pixels, to_sample] = Passes(work);
  const bool own = own_sizes(work);
  SampleSize size{work.delivered.height, work.delivered.width};
  const std::byte* pixels = nullptr;
  SampleCrop own_box;
  SampleCrop whole{0, 0, size.width, size.height, false};
  to_sample.sources = {&pixels, 1};
  to_sample.crops = {&whole, 1};
  for (std::size_t row = first; row < last; ++row) {
    const auto program = work.instructions.subspan(work.begins[row], work.begins[row + 1] - work.begins[row]);
    to_pixels.sources = work.sources.subspan(row, 1);
    to_pixels.crops = work.crops.subspan(row, 1);
    if (own) {
      own_box = own_crop(work.crops[row]);
      size = {resized_height(work, own_box), resized_width(work, own_box)};
      whole = whole_crop(size);
      to_pixels.crops = {&own_box, 1};
      to_pixels.delivered = to_pixels.delivered.sized(size.height, size.width);
      to_sample.sizes = {&size, 1};
      if (work.patch != 0) to_sample.tokens = work.tokens.subspan(row, 1);
    }
    if (!work.sizes.empty()) to_pixels.sizes = work.sizes.subspan(row, 1);
    to_pixels.target = reinterpret_cast<std::byte*>(interpreter.input(to_pixels.delivered));
    if (!work.frame_bytes.empty()) {
      to_pixels.frame_bytes = work.frame_bytes.subspan(row, 1);
      to_pixels.broken = work.broken + row;
      if (!work.files.empty()) to_pixels.files = work.files.subspan(row, 1);
    }
    transform_rows(to_pixels, 0, 1);
    if (to_pixels.broken != nullptr && *to_pixels.broken != 0) continue;
    pixels = reinterpret_cast<const std::byte*>(interpreter.run(program));
    to_sample.target = work.target + (work.patch != 0 ? 0 : row * work.delivered.size_bytes());
    transform_rows(to_sample, 0, 1);
  }
}

}  // namespace shard::augment
