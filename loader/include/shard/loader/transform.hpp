// Transform: the one pass from stored samples to a batch. It crops, resizes, flips, normalises, casts and
// changes the layout.
//
// Host and CUDA share the arithmetic, so both give the same bits: integers for samples stored as u8
// (loader/src/transform/arithmetic.hpp), float32 for samples stored as f16, bf16 and f32
// (float_arithmetic.hpp). Parameters are drawn per sample by Philox4x32-10 (Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011), keyed by (seed, epoch, sample). So they are the same for every
// rank, device, thread count and point of resume.
//
//   stored          crop, flip, layout   resize            delivered dtype       normalization option
//   u8              yes                  in bytes          u8, f16, bf16, f32    any; none: the recorded one
//   floats          yes                  in float32        f16, bf16, f32        the recorded one, which the
//                                                                                values already have; any,
//                                                                                if none is recorded
//   floats, packed  yes                  in bytes          u8, f16, bf16, f32    any; none: the recorded one
//   u16             yes                  in float32        u16, f16, bf16, f32   any; none: the recorded one
//   tensors         no                   no                as stored; floats     none
//                                                          also as other floats
//
// u16 is divided by 65535 where u8 is divided by 255. u8 of more than four channels is resized in float32
// too, and rounded to bytes. Resized values that stay u16 differ from the exact ones by half a unit and what
// float_arithmetic.hpp says. The same holds for samples of any size, whose weights are Pillow's then.
//
// Codec packed stores floats as bytes, so they are treated as u8. They are delivered in the recorded dtype
// unless another one is requested. Other floats are values. A byte cannot be recovered from them exactly, so
// u8 is refused. A NaN or an infinity reaches only the delivered values that depend on it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "shard/dataset_spec.hpp"
#include "shard/error.hpp"
#include "shard/jpeg_file.hpp"
#include "shard/loader/augment.hpp"
#include "shard/loader/mix.hpp"

namespace shard {

struct DatasetInfo;

enum class CropKind : std::uint8_t {
  // The whole sample.
  none,
  // torchvision's CenterCrop.
  center,
  // torchvision's RandomCrop, with a uniform position.
  random,
  // torchvision's RandomResizedCrop: 10 draws of area scale and log-uniform aspect, then the central
  // fallback. Bilinear, antialiased when shrinking, by at most 32 times. u8: within one level of Pillow's
  // result; floats: torchvision's values, except for rounding.
  random_resized,
};
constexpr std::array<std::string_view, 4> words_of(CropKind) {
  return {"none", "center", "random", "random_resized"};
}

// What is made of a whole sample before a crop, whatever its size. Aspect ratios are kept, but by squash.
enum class ResizeKind : std::uint8_t {
  none,
  // torchvision's Resize(N): the short side becomes resize_height, the long one int(N * long / short).
  shortest,
  // The long side becomes resize_height, the short one int(N * short / long), at least 1.
  longest,
  // torchvision's Resize((h, w)).
  squash,
  // The largest size that fits into resize_height x resize_width: both sides times the smaller of the two
  // ratios (a double, as the product), rounded half to even, at least 1. It lies in the middle (an odd pixel
  // is right or below), and the rest has the value `fill`.
  letterbox,
  // The smallest size that covers resize_height x resize_width: both sides times the larger of the two
  // ratios (a double, as the product), rounded half to even. Without a crop, the middle of that is delivered.
  cover,
};
constexpr std::array<std::string_view, 6> words_of(ResizeKind) {
  return {"none", "shortest", "longest", "squash", "letterbox", "cover"};
}

// Pillow's filters, antialiased when shrinking, bit for bit (loader/src/transform/exact/exact_filter.hpp).
enum class ResizeFilter : std::uint8_t { bilinear, bicubic, box, lanczos };
constexpr std::array<std::string_view, 4> words_of(ResizeFilter) {
  return {"bilinear", "bicubic", "box", "lanczos"};
}

struct TransformOptions {
  // First. Then the crop is cut out of what it makes; random_resized needs none.
  ResizeKind resize = ResizeKind::none;
  // Rows and columns; shortest and longest: the same number twice.
  std::uint32_t resize_height = 0;
  std::uint32_t resize_width = 0;
  // Above 0: samples keep the sizes that `resize` makes (none or longest), and batches have the sides of
  // their largest ones, rounded up to multiples of this number. A sample begins at row 0 and column 0; the
  // rest has the value `fill`. Without a crop.
  std::uint32_t padded = 0;
  // Above 0: samples are delivered as square patches of this side, 1 to 256, and a batch is [tokens,
  // patch * patch * channels]: all patches of its first sample, row by row, then those of the next one. In a
  // patch, pixels are row by row, with their channels together. Without resize and crop: the whole sample is
  // resized to patch_grid() patches. Operations come before it is cut into patches.
  std::uint32_t patch = 0;
  // With patch: of each sample, at most. 1 to 65536.
  std::uint32_t max_tokens = 0;
  // Of all resizes of samples of any size, and of `resize`. Samples of one size: random_resized has bilinear.
  ResizeFilter filter = ResizeFilter::bilinear;
  // The bytes around pixels, of letterbox, of a crop that is larger than its sample, and of padded: none
  // (zeros), one, or one for each channel. Samples of more than four channels: none or one. Samples stored as
  // u16 or as floats: none.
  std::vector<std::uint8_t> fill;

  CropKind crop = CropKind::none;
  // Delivered rows and columns. 0: as stored, or as `resize` makes them.
  std::uint32_t crop_height = 0;
  std::uint32_t crop_width = 0;
  // random_resized: bounds of the share of the area, and of width / height.
  std::array<double, 2> scale{0.08, 1.0};
  std::array<double, 2> ratio{3.0 / 4.0, 4.0 / 3.0};
  // Of a horizontal flip, 0 to 1.
  double flip = 0.0;
  // Delivered dtype (u8, u16, f16, bf16, f32) and layout. None: as stored.
  std::optional<DType> dtype;
  std::optional<Layout> layout;
  // For samples delivered as floats (see above). None: what the data set recorded. One mean and std for each
  // channel; up to four channels may have three, and a fourth has mean 0 and std 1 then. If no normalisation
  // is recorded for floats (mean 0, std 1), they become (value - mean) / std after the resize.
  std::optional<Normalization> normalization;
  // Executed in this order on the cropped, resized and flipped pixels, for samples stored as u8 or with codec
  // packed (augment.hpp). Padded samples and patches: on each sample's own pixels, before they are padded or
  // cut.
  std::vector<Operation> operations;
};

// Rows and columns of one stored sample.
struct SampleSize {
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  bool operator==(const SampleSize&) const = default;
};

// What is cut out of one stored sample: a box, which is resized to the delivered size,
// and whether the result is flipped.
struct SampleCrop {
  // Columns [left, left + width) and rows [top, top + height) of the stored sample.
  std::uint32_t left = 0;
  std::uint32_t top = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  bool flip = false;
  // What the box is resized to. Both 0: the delivered rows and columns.
  std::uint32_t resized_height = 0;
  std::uint32_t resized_width = 0;
  // The row and column of the view where the resized box begins. Parts outside of the view are cut off, and
  // what it does not cover has the value `fill`. The flip comes after that.
  std::int32_t row = 0;
  std::int32_t column = 0;
  bool operator==(const SampleCrop&) const = default;
};

// The crop of one sample in one epoch. Pure. `stored`: with the sample's rows and columns. `draw`: its index,
// or what BatchIndices::draws says. `stored` and `options` must have passed check_transform().
SampleCrop draw_crop(const SampleSpec& stored, const TransformOptions& options, std::uint64_t seed,
                     std::uint64_t epoch, std::uint64_t draw);
// TransformOptions::patch: rows and columns of patches of a sample: those of the largest scale at which
// ceil(height * scale / patch) * ceil(width * scale / patch) is at most max_tokens, as NaFlex has it
// (SigLIP 2, Tschannen et al., 2025), but exact instead of searched. Each is at least 1.
SampleSize patch_grid(const SampleSpec& stored, const TransformOptions& options);
// TransformOptions::padded: the rows and columns that a sample has in its batch. Once the batch's width is
// known, place_padded() moves a flipped sample to column 0.
SampleSize padded_size(const SampleSpec& stored, const TransformOptions& options);
void place_padded(SampleCrop& crop, std::uint32_t view_width) noexcept;

// The delivered sample, for samples that are stored without codec and without a recorded normalisation.
// Throws invalid_argument, naming the option, its bounds and what to do (crop larger than the sample, floats
// to u8, probabilities outside [0, 1], ...).
SampleSpec check_transform(const SampleSpec& stored, const TransformOptions& options);
// True if nothing has to be computed: the delivered bytes are the stored ones.
bool is_identity(const SampleSpec& stored, const TransformOptions& options);

// One batch of work for Stream::transform: row i of `target` is made from sources[i] with crops[i]. A source
// has stored.size_bytes() bytes, or is a frame of codec packed or jpeg.
struct TransformWork {
  SampleSpec stored;
  SampleSpec delivered;
  Normalization normalization;
  // True: u8 becomes (byte / 255 - mean) / std, u16 likewise with 65535, and floats become (value - mean) /
  // std. False: u8 becomes byte / 255, u16 value / 65535, and floats stay.
  bool normalize = false;
  // Readable by the device.
  std::span<const std::byte* const> sources;
  std::span<const SampleCrop> crops;
  // Device memory.
  std::byte* target = nullptr;

  // Codec packed (shard/packed_format.hpp) and jpeg: sources[i] is a frame of frame_bytes[i] bytes with a
  // sample of `stored`, which is u8; 16-byte aligned on a GPU. Empty: samples without codec.
  std::span<const std::uint64_t> frame_bytes{};
  // Codec jpeg: what each frame has; `stored` is nhwc. Empty: frames of codec packed, or none.
  std::span<const jpeg::FrameFile> files{};
  // Frames: sources.size() entries in pinned memory, which the caller sets to 0. Entry i is set to 1 if
  // source i is not a valid frame; row i is then undefined. This may be known only when the work is done.
  // Codec jpeg: as far as the frame is decoded, which is only what the boxes need.
  std::uint32_t* broken = nullptr;
  // Frames on a GPU, of codec packed if boxes are resized: device memory for sources.size() stored samples,
  // used only during the work. Samples of any size, and of codec jpeg: each begins at the next multiple of
  // kUnpackedAlign.
  static constexpr std::uint64_t kUnpackedAlign = 16;
  std::byte* unpacked = nullptr;
  // Codec jpeg on a GPU: device memory for what lies between frames and samples, 256-byte aligned, used only
  // during the work. With little of it, fewer frames are decoded at a time.
  std::byte* workspace = nullptr;
  std::uint64_t workspace_bytes = 0;

  // Programs (augment.hpp), for stored u8: that of sample i is instructions[begins[i]] to
  // instructions[begins[i + 1]]. begins: empty, or sources.size() + 1 entries.
  std::span<const Instruction> instructions{};
  std::span<const std::uint32_t> begins{};
  // On a GPU, with programs: device memory of augment_scratch_bytes(), 256-byte aligned,
  // used only during the work.
  std::byte* augment_scratch = nullptr;
  // Programs are executed on what the boxes are resized to (resized_height x resized_width), before that is
  // placed and the rest filled: TransformOptions::padded. With patch it is always so.
  bool padded = false;
  // Mixup and cutmix (mix.hpp), for stored u8: pair i mixes rows 2i and 2i + 1 of the target.
  // Empty, or sources.size() / 2 entries.
  std::span<const MixPair> pairs{};
  // The target is read again soon, so it is not written past the caches.
  bool target_is_read_soon = false;

  // Of each source, if stored.is_free(); else empty.
  std::span<const SampleSize> sizes{};
  // Boxes are resized by exactly Pillow's arithmetic, with this filter, and placed (SampleCrop::row). Always
  // so for samples of any size. Only stored u8 of up to four channels are resized in bytes; others are
  // resized in float32 (loader/src/transform/exact/exact_filter.hpp).
  bool exact = false;
  ResizeFilter filter = ResizeFilter::bilinear;
  // Around the pixels of what is resized in bytes, and the stored value around those of what is not.
  std::array<std::uint8_t, 4> fill{};
  float fill_value = 0;
  // Above 0: TransformOptions::patch. `delivered` is one patch (nhwc), `tokens` has the number of the first
  // patch of each source, and crops are resized to whole patches.
  std::uint32_t patch = 0;
  std::span<const std::uint32_t> tokens{};
  // Frames of samples of any size are only decoded if `delivered` is `stored`, which is nhwc then. The
  // samples lie in `target` as `unpacked` has them. Exact; crops are whole samples, resized to their sizes.
  // Codec jpeg: crops are the parts of samples that are decoded; the rest of each sample is undefined. A file
  // of no bytes: its source is no frame, and takes no room in `target`.
  bool only_decodes() const noexcept { return delivered.is_free(); }
};

// What a GPU needs for the programs of `samples` delivered samples. `with_mix`: mixes(operations).
std::uint64_t augment_scratch_bytes(const SampleSpec& delivered, std::uint64_t samples,
                                    bool with_mix) noexcept;

// check_transform() for a data set, with its codec and recorded normalisation. Returns the work without its
// samples: what is stored (codec packed: u8), what is delivered, and the normalisation. `view`: named in
// errors of operations. Throws like check_transform().
TransformWork plan_transform(const DatasetInfo& info, const TransformOptions& options,
                             std::uint32_t view = 0);
// True if the sources of that work are stored frames, which the transform decodes (codecs packed and jpeg,
// unless codecs are mixed). Otherwise they are samples.
bool decodes_frames(const DatasetInfo& info);
// True if the delivered bytes are those in the data set. False for codecs packed and jpeg.
bool is_identity(const DatasetInfo& info, const TransformOptions& options);

}  // namespace shard
