// RGB -> the bytes of a sample: resize, crop, normalise, cast, layout.
//
// Resize is Pillow's `Image.resize` with reducing_gap=None: two separable passes, horizontal then vertical,
// 8-bit fixed point (22 bits of precision), rounded to 8 bits after each pass; only the rows and columns that
// the crop keeps are computed, and the result is the same bit for bit. Sizes follow torchvision: Resize(N)
// makes the short side N and the long side int(N * long / short); CenterCrop starts at
// round-half-to-even((size - crop) / 2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "shard/image/decode.hpp"
#include "shard/sample_spec.hpp"

namespace shard::image {

enum class Filter : std::uint8_t { box, bilinear, bicubic, lanczos };
std::string_view to_string(Filter filter) noexcept;
std::optional<Filter> filter_from_string(std::string_view name) noexcept;

struct Size {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  bool operator==(const Size&) const = default;
};
struct Box {  // half-open: columns [left, left + width), rows [top, top + height)
  std::uint32_t left = 0;
  std::uint32_t top = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  bool operator==(const Box&) const = default;
};

struct PreprocessOptions {
  std::uint32_t resize_short = 256;           // torchvision Resize(N); unused when squash is set
  std::optional<Size> squash;                 // resize to exactly this, whatever the aspect
  std::optional<Size> crop = Size{224, 224};  // centre crop; none: only with squash
  Filter filter = Filter::bilinear;
  DType dtype = DType::f16;  // u8, f16, bf16, f32
  Layout layout = Layout::nchw;
  Normalization normalization;
  // Throws invalid_argument naming the option: sizes 1 to 65535, crop not larger than the resize, std not 0,
  // finite values.
  void check() const;
  SampleSpec sample_spec() const;
};

// The size that the whole image is resized to, and the box of it that is kept.
Size resized_size(Size source, const PreprocessOptions& options);
Box crop_box(Size resized, const PreprocessOptions& options);

// Holds coefficient tables and buffers for reuse. One per thread.
class Preprocessor {
 public:
  explicit Preprocessor(const PreprocessOptions& options);  // throws invalid_argument
  Preprocessor(Preprocessor&&) noexcept;
  Preprocessor& operator=(Preprocessor&&) noexcept;
  ~Preprocessor();

  const PreprocessOptions& options() const noexcept;
  // The resized and cropped image, 8 bits; valid until the next call.
  RgbView resize_crop(const RgbView& source);
  // The sample's bytes into `out`, which is sample_spec().size_bytes() long.
  // f32: (float(byte) / 255 - mean) / std, each step rounded to float32; f16, bf16: that value rounded once
  // more.
  void run(const RgbView& source, std::span<std::byte> out);

  // From the bytes of a file in one go; for JPEG only the rows and columns that the crop needs go through the
  // inverse DCT and colour conversion. The same bytes as decode() then run(). Returns what the decoder
  // complained about. Errors: as decode(); then the content of `out` is arbitrary.
  WarningSet run_file(Decoder& decoder, std::span<const std::byte> file, const DecodeOptions& decode,
                      std::span<std::byte> out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shard::image
