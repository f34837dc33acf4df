// JpegDecoder: JPEG files as they are -> pixels on a device, without a data set (library shard::jpeg).
//
//   shard::JpegDecoder decoder(shard::make_cuda_device(0));
//   shard::JpegBatch batch = decoder.decode(files, {.height = 224, .width = 224});
//
// Pixels equal Pillow's `ImageOps.exif_transpose(Image.open(f)).convert("RGB")`, bit for bit, on every
// device. On a GPU, kernels decode baseline files (docs/jpeg.md); others (progressive, arithmetic codes,
// several scans, damaged ones that libjpeg-turbo still accepts) are decoded by threads of the host into the
// same batch, and counted.
//
// Thread safety: one call at a time. For several batches in flight use several decoders of one device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shard/dtype.hpp"
#include "shard/error.hpp"
#include "shard/loader/device.hpp"
#include "shard/loader/transform.hpp"

namespace shard {

// Columns [left, left + width) and rows [top, top + height).
struct JpegBox {
  std::uint32_t left = 0;
  std::uint32_t top = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
};

struct JpegInput {
  // Host memory, which is copied to the device in place where it is pinned; on a GPU also its device memory,
  // if `on_device` (it is copied to the host and back).
  std::span<const std::byte> file;
  // Of the image that is delivered, so after it was turned upright. None: all of it.
  std::optional<JpegBox> box;
  bool on_device = false;
};

struct JpegDecodeOptions {
  // Each box is resized to this, as Pillow resizes what it has cropped. Both 0: boxes keep their sizes.
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  ResizeFilter filter = ResizeFilter::bilinear;
  // u8, f16, bf16 or f32.
  DType dtype = DType::u8;
  Layout layout = Layout::nhwc;
  // Of floats: (byte / 255 - mean) / std. None: byte / 255.
  std::optional<Normalization> normalization;
  // By its EXIF data.
  bool upright = true;
  // Files that cannot be decoded are reported in JpegBatch::failures. If not, the first one is thrown.
  bool report_failures = false;
};

struct JpegBatch {
  struct Image {
    std::uint64_t offset = 0;  // bytes in `memory`
    std::uint32_t height = 0;
    std::uint32_t width = 0;
  };
  struct Failure {
    std::size_t input = 0;
    ErrorCode code = ErrorCode::corrupt;
    std::string message;
  };
  // Device memory: the images one after the other, uint8 or another dtype [row, column, channel] (nhwc) or
  // [channel, row, column], red, green, blue. With a size: [input, ...] without gaps, zeros for failures.
  // Else each begins at a multiple of 16 bytes, and failures have 0 rows. Complete when decode() returns.
  std::shared_ptr<Block> memory;
  std::vector<Image> images;
  std::vector<Failure> failures;
  // Images that threads of the host decoded.
  std::uint64_t on_host = 0;
};

class JpegDecoder {
 public:
  // Asked on the thread that gives the memory of a batch back: the stream with the last work that uses it.
  using LastStream = std::function<std::optional<StreamRef>()>;

  // `threads`: that copy files and decode what kernels do not; 1 to 64. 0: as many as the process may use, at
  // most 8. What takes less time than to wake them, the calling thread does. Memory is allocated by the first
  // calls and kept: on a GPU up to about 2 GB, or what one image takes. With `last_stream` that of up to 8
  // batches is kept, too; without it a GPU's is freed when its holder ends, for which the driver waits for
  // the device. Errors: resource.
  explicit JpegDecoder(std::shared_ptr<Device> device, unsigned threads = 0,
                       LastStream last_stream = nullptr);
  JpegDecoder(JpegDecoder&&) noexcept;
  JpegDecoder& operator=(JpegDecoder&&) noexcept;
  ~JpegDecoder();

  // Errors, which name the input by its number: corrupt, unsupported (no JPEG, 12 bits, ...), resource (more
  // than 178,956,970 pixels), invalid_argument (a box that is empty or leaves the image; options);
  // without a number: resource (memory), io (the device).
  JpegBatch decode(std::span<const JpegInput> inputs, const JpegDecodeOptions& options = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shard
