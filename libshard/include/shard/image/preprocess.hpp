// Preprocessor: RGB -> the bytes of a sample. Resizes, crops, normalises, casts and changes the layout.
//
// Resize is Pillow's `Image.resize` with reducing_gap=None: two separable passes, horizontal then vertical,
// in 8-bit fixed point (22 bits of precision), rounded to 8 bits after each pass. Only the rows and columns
// that the crop keeps are computed, with the same result bit for bit. Sizes follow torchvision: Resize(N)
// makes the short side N and the long side int(N * long / short); CenterCrop starts at
// round-half-to-even((size - crop) / 2).
//
// With `channels` (wide images) the resize has the same filters and sizes, but is computed in float64 and
// rounded once, to the nearest value, halves up: within half a unit of the exact result, also of 16 bits.
// Images of 8 bits become u16 by value x 257. Integers become floats by (value / 255 - mean) / std, or value
// / 65535; floats are kept, and resized.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "shard/dataset_spec.hpp"
#include "shard/error.hpp"
#include "shard/image/decode.hpp"
#include "shard/image/wide.hpp"

namespace shard::image {

// nearest: Pillow's Image.resize(size, NEAREST), which is not antialiased: each output is the pixel over
// which its centre lies. No value is made that the image does not have.
enum class Filter : std::uint8_t { box, bilinear, bicubic, lanczos, nearest };
std::string_view to_string(Filter filter) noexcept;
std::optional<Filter> filter_from_string(std::string_view name) noexcept;

struct Size {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  bool operator==(const Size&) const = default;
};
// Samples of any size: how large each of them is made. No image is enlarged.
struct FreeSize {
  enum class Bound : std::uint8_t { none, longest, shortest, area };
  Bound bound = Bound::none;
  // Pixels of the long side, of the short side, or of the whole image. An image with more is resized, with
  // its aspect ratio, to the largest size that has no more: the other side is int(most * other / this one),
  // but at least 1, and for an area both sides are int(side * sqrt(most / pixels)).
  std::uint64_t most = 0;
  // Both sides become multiples of this: what is over is cropped, as a centre crop does.
  std::uint32_t multiple = 1;
  bool operator==(const FreeSize&) const = default;
};

// Columns [left, left + width) and rows [top, top + height).
struct Box {
  std::uint32_t left = 0;
  std::uint32_t top = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  bool operator==(const Box&) const = default;
};

struct PreprocessOptions {
  // Short side after resizing, as torchvision's Resize(N). Not used with squash.
  std::uint32_t resize_short = 256;
  // Resize to exactly this size, and ignore the aspect ratio.
  std::optional<Size> squash;
  // Centre crop. None only with squash.
  std::optional<Size> crop = Size{224, 224};
  // Instead of these three: the samples have sizes of their own.
  std::optional<FreeSize> free_size;
  Filter filter = Filter::bilinear;
  // u8, u16, f16, bf16 or f32.
  DType dtype = DType::f16;
  // 0: red, green and blue of 8 bits, whatever the images are (decode.hpp); not with u16. 1 to 4096: the
  // samples keep the channels and the bits of their images, which must all have so many channels; gray
  // becomes three (wide.hpp, and below).
  std::uint32_t channels = 0;
  bool wide() const noexcept { return channels != 0 || dtype == DType::u16; }
  Layout layout = Layout::nchw;
  Normalization normalization;
  // Throws invalid_argument naming the option: sizes 1 to 65535, area up to 2^32, multiple up to 4096, crop
  // not larger than the resize, std not 0, finite values.
  void check() const;
  SampleSpec sample_spec() const;
};

// The size to which the whole image is resized, and the box of it that is kept. Errors: unsupported, if an
// image of this size cannot be a sample; invalid_argument (0 pixels).
Size resized_size(Size source, const PreprocessOptions& options);
Box crop_box(Size resized, const PreprocessOptions& options);

// Keeps coefficient tables and buffers for reuse. Use one per thread.
class Preprocessor {
 public:
  explicit Preprocessor(const PreprocessOptions& options);  // throws invalid_argument
  Preprocessor(Preprocessor&&) noexcept;
  Preprocessor& operator=(Preprocessor&&) noexcept;
  ~Preprocessor();

  const PreprocessOptions& options() const noexcept;
  // The resized and cropped image, 8 bits per channel. Valid until the next call.
  RgbView resize_crop(const RgbView& source);
  // Writes the sample to `out`, which is sample_spec().size_bytes() long, and not free. f32: (float(byte) /
  // 255 - mean) / std, each step rounded to float32. f16, bf16: that value, rounded once more.
  void run(const RgbView& source, std::span<std::byte> out);
  // The same with options().wide(). Errors: unsupported, if the image does not fit the samples.
  void run(const WideView& source, std::span<std::byte> out);

  // Decodes the bytes of a file and writes the sample, with the same result as decode() and run(). For JPEG,
  // only the rows and columns that the crop needs go through the inverse DCT and colour conversion. Returns
  // the decoder's warnings. Errors: as decode(); the content of `out` is then undefined.
  WarningSet run_file(Decoder& decoder, std::span<const std::byte> file, const DecodeOptions& decode,
                      std::span<std::byte> out);

  // The same into `out`, which gets the size of the sample. The result, made(), is what the sample is: the
  // sample_spec(), with its own rows and columns if that is free.
  WarningSet run_file(Decoder& decoder, std::span<const std::byte> file, const DecodeOptions& decode,
                      std::vector<std::byte>& out);
  void run(const RgbView& source, std::vector<std::byte>& out);
  void run(const WideView& source, std::vector<std::byte>& out);
  const SampleSpec& made() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shard::image
