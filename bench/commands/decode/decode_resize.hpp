// Resize, crop and normalise on the GPU, of images of different sizes at once.
//
// Pillow's antialiased bilinear filter in two passes, rounded to bytes after each, with weights in float32
// where Pillow has 22 bits: within one level of it. Then (byte / 255 - mean) / std in float32, rounded to
// float16.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace shard::bench {

struct ResizeRecord {
  const std::uint8_t* source;  // RGB interleaved, rows of `pitch` bytes
  std::uint8_t* rows;          // room for `count` rows of crop x 3 bytes
  std::uint64_t pitch;
  std::uint32_t width;
  std::uint32_t height;
  std::uint32_t resized_width;
  std::uint32_t resized_height;
  std::uint32_t left;  // of the crop, in the resized image
  std::uint32_t top;
  std::uint32_t first;  // source rows [first, first + count) are all that the crop needs
  std::uint32_t count;
};

struct ResizeLaunch {
  const ResizeRecord* records = nullptr;  // device memory
  std::uint32_t images = 0;               // at most 65535
  std::uint32_t crop = 0;                 // rows and columns
  std::uint16_t* target = nullptr;        // float16 [image, channel, row, column], C order
  float mean[3]{};
  float std[3]{};
};

// Source rows that the crop needs, for a record.
void set_needed_rows(ResizeRecord& record, std::uint32_t crop);

// Queues both passes. Returns what the launch gave.
cudaError_t launch_resize_normalise(const ResizeLaunch& launch, cudaStream_t stream);

}  // namespace shard::bench
