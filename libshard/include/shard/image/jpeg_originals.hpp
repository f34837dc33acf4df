// JpegOriginals: JPEG files -> frames of codec jpeg, which hold the file's own bytes, and the pixels that
// they stand for. Progressive, arithmetic-coded and multi-scan files are transcoded to baseline without the
// loss of a coefficient.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "shard/error.hpp"
#include "shard/image/decode.hpp"
#include "shard/jpeg_frame.hpp"

namespace shard::image {

// What is stored of a JPEG file.
struct JpegOriginal {
  // Of the sample, which is upright.
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  WarningSet warnings;
  // Nothing: no frame can hold this file, nor a transcoded one with the same pixels. The sample can be
  // encoded.
  std::optional<JpegFrame> frame;
  // The frame holds a baseline file with the coefficients of this one.
  bool transcoded = false;
};

// The file in the frame that holds a file of `file_bytes`, which begins with `front`, as it is; 0.6 us.
// Nothing: its header is one that no frame holds, or longer, or says more pixels than its bytes can have.
std::optional<jpeg::FrameFile> jpeg_file_of(std::span<const std::byte> front,
                                            std::uint64_t file_bytes) noexcept;
// Whether it may have come from there: memory for its pixels can be planned with it.
bool is_jpeg_file(const jpeg::FrameFile& file) noexcept;
// The bytes of that frame.
std::uint64_t jpeg_frame_bytes(const jpeg::FrameFile& file) noexcept;

// Keeps buffers for reuse. Use one per thread.
class JpegOriginals {
 public:
  JpegOriginals();
  JpegOriginals(JpegOriginals&&) noexcept;
  JpegOriginals& operator=(JpegOriginals&&) noexcept;
  ~JpegOriginals();

  // `file`: of format jpeg. Sets `sample` to what Decoder::decode() gives of it, as [row, column, RGB]
  // without gaps; the frame decodes to the same bytes. Errors: those of Decoder::decode().
  JpegOriginal take(std::span<const std::byte> file, const DecodeOptions& options,
                    std::vector<std::byte>& sample);
  // The same without pixels, in a third of the time: the codes are read, but not decoded. Without a frame
  // unless the file is stored as it is and take() has no warning of it. Errors: those of reading its header.
  JpegOriginal take_undecoded(std::span<const std::byte> file, const DecodeOptions& options);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shard::image
