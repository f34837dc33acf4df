#include "decode/jpeg_input.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "shard/error.hpp"
#include "shard/image/jpeg_originals.hpp"

namespace shard::jpeg {
namespace {

constexpr std::uint32_t kLargestSide = 65535;

bool fits_kernels(std::span<const std::byte> file, bool upright, FrameFile& frame) {
  const std::optional<FrameFile> found = image::jpeg_file_of(file, file.size());
  if (!found) return false;  // another kind, or damaged: libjpeg-turbo says what it is
  frame = *found;
  if (!upright) frame.orientation = 1;
  // Larger ones are refused by the decoder of the host.
  return std::uint64_t{frame.width()} * frame.height() <= kMostPixels;
}

PixelBox box_of(const Input& input, const std::optional<JpegBox>& box) {
  if (!box) return {0, 0, input.width, input.height};
  if (box->width == 0 || box->height == 0 || box->left >= input.width || box->top >= input.height ||
      box->width > input.width - box->left || box->height > input.height - box->top)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("a box of {} columns and {} rows at column {} and row {} does not lie in the image of "
                    "{} x {} (columns x rows): make it smaller or move it",
                    box->width, box->height, box->left, box->top, input.width, input.height));
  return {box->left, box->top, box->width, box->height};
}

void set_box(std::size_t number, const JpegInput& given, Input& input) {
  try {
    input.box = box_of(input, given.box);
  } catch (const Error& error) {
    input.failure = failure_of(number, error);
  }
}

}  // namespace

JpegBatch::Failure failure_of(std::size_t number, const Error& error) {
  return {number, error.code(), fmt::format("input {}: {}", number, error.what())};
}

bool read_for_kernels(std::size_t number, const JpegInput& given, bool upright, Input& input) {
  if (!fits_kernels(input.file, upright, input.frame)) return false;
  input.by_kernels = true;
  input.width = input.frame.upright_width();
  input.height = input.frame.upright_height();
  set_box(number, given, input);
  return true;
}

void read_for_host(std::size_t number, const JpegInput& given, bool upright, HostJpeg& host, Input& input) {
  try {
    const image::ImageInfo info = host.read_info(input.file);
    input.width = upright ? info.upright_width() : info.width;
    input.height = upright ? info.upright_height() : info.height;
  } catch (const Error& error) {
    input.failure = failure_of(number, error);
    return;
  }
  set_box(number, given, input);
}

SampleSpec check_options(const JpegDecodeOptions& options) {
  const auto refuse = [](const std::string& what) { throw Error(ErrorCode::invalid_argument, what); };
  if ((options.height == 0) != (options.width == 0) || std::max(options.height, options.width) > kLargestSide)
    refuse(fmt::format("height is {} and width {}: both must be 1 to {}, or both 0", options.height,
                       options.width, kLargestSide));
  const bool is_float =
      options.dtype == DType::f16 || options.dtype == DType::bf16 || options.dtype == DType::f32;
  if (options.dtype != DType::u8 && !is_float)
    refuse(fmt::format("dtype is {}; it must be u8, f16, bf16 or f32", to_string(options.dtype)));
  if (options.layout != shard::Layout::nhwc && options.layout != shard::Layout::nchw)
    refuse("layout must be nhwc or nchw");
  if (options.filter > ResizeFilter::lanczos)
    refuse(fmt::format("filter is {}; it must be 0 to 3", static_cast<int>(options.filter)));
  if (options.normalization) {
    const Normalization& values = *options.normalization;
    if (!is_float) refuse("a normalisation is for f16, bf16 or f32, and dtype is u8");
    if (values.mean.size() != 3 || values.std.size() != 3)
      refuse(fmt::format("mean has {} numbers and std {}: both must have 3", values.mean.size(),
                         values.std.size()));
    if (std::find(values.std.begin(), values.std.end(), 0.0F) != values.std.end()) refuse("std has a 0");
  }
  SampleSpec spec;
  spec.dtype = options.dtype;
  spec.layout = options.layout;
  spec.channels = 3;
  spec.height = options.height;
  spec.width = options.width;
  return spec;
}

}  // namespace shard::jpeg
