// The inputs of one JpegDecoder::decode(): what their headers say, and which way each of them takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decode/host_jpeg.hpp"
#include "jpeg/frame_file.hpp"
#include "jpeg/region.hpp"
#include "shard/loader/jpeg_decoder.hpp"

namespace shard::jpeg {

struct Input {
  std::span<const std::byte> file;  // host memory
  FrameFile frame;                  // if by_kernels
  bool by_kernels = false;
  std::uint64_t workspace_bytes = 0;  // of the kernels; 0: not known yet
  bool pinned = false;                // the file can be copied to the device from where it is
  std::uint32_t width = 0;            // of the image that is delivered
  std::uint32_t height = 0;
  PixelBox box;
  std::optional<JpegBatch::Failure> failure;
};

// "input 3: ..."
JpegBatch::Failure failure_of(std::size_t number, const Error& error);

// Fill in what `input` is, which has its file. Never throw for what the file is: that is its failure. The
// first one takes less than half a microsecond, and returns false if the file is not for kernels.
bool read_for_kernels(std::size_t number, const JpegInput& given, bool upright, Input& input);
void read_for_host(std::size_t number, const JpegInput& given, bool upright, HostJpeg& host, Input& input);

// Throws invalid_argument. The spec of one image that is delivered, with the options' size, or free.
SampleSpec check_options(const JpegDecodeOptions& options);

}  // namespace shard::jpeg
