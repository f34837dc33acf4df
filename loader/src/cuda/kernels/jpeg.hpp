// JPEGs decoded by kernels, from their files and indices to pixels, bit for bit as libshard's reference
// (jpeg/decode.hpp) and libjpeg-turbo.
//
//   launch_jpeg     a thread per piece    files, indices -> coefficients    128 pieces of one image per block
//                   a thread per block    coefficients   -> samples
//                   a thread per 4 pixels samples        -> pixels of the box
//
// A batch is planned on the host (JpegPlan), which says how much memory it takes before a file is read.
// Frames and indices may hold any bytes: kernels stay inside their buffers and end, and say which image is
// damaged.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "jpeg/header.hpp"
#include "jpeg/region.hpp"

namespace shard::gpu {

// One image of a batch, as the kernels see it.
struct JpegImage {
  jpeg::Layout layout;     // Huffman tables are numbered anew, without gaps
  jpeg::McuWindow window;  // what is decoded; its columns are those of whole pieces
  jpeg::PixelBox box;
  std::uint16_t quantization[jpeg::kMostComponents][jpeg::kBlockValues];  // of components, zigzag
  std::uint32_t first_block[jpeg::kMostComponents + 1];  // of each component among the image's blocks
  std::uint32_t dc_tables;
  std::uint32_t tables;  // DC and AC
  std::uint32_t file_bytes;
  std::uint32_t data_offset;
  std::uint32_t look_ups;  // number of the first one, in the batch
  std::uint64_t blocks;    // the image's first one, in the batch
  const std::byte* file;   // 16-byte aligned, readable up to a multiple of 16 bytes
  const std::byte* index;  // 4-byte aligned, index_bytes(layout)
  std::uint8_t* pixels;    // rows of box.width * layout.channels() bytes
};

// Which blocks of a kernel work on which image: those from first[i] to first[i + 1].
struct JpegGroups {
  const std::uint32_t* first = nullptr;
  std::uint32_t count = 0;
};

// All pointers: device memory.
struct JpegLaunch {
  const JpegImage* images = nullptr;
  std::uint32_t count = 0;
  const std::uint16_t* look_ups = nullptr;
  std::int16_t* coefficients = nullptr;  // 128-byte aligned
  std::uint8_t* samples = nullptr;       // 16-byte aligned
  std::uint32_t* faults = nullptr;       // of each image: 0, or a jpeg::Fault; set to 0 before
  JpegGroups pieces;
  JpegGroups blocks;
  JpegGroups pixels;
  std::uint32_t most_tables = 0;  // of an image
  bool fetch_ahead = true;        // each lane's bytes come through a ring in shared memory
};

// Where an image of a batch is, and which of its pixels are wanted.
struct JpegSource {
  const jpeg::Header* header = nullptr;
  std::uint32_t file_bytes = 0;
  jpeg::PixelBox box;
  const std::byte* file = nullptr;
  const std::byte* index = nullptr;
  std::uint8_t* pixels = nullptr;
};

// What a batch takes, and its parameters. Borrows nothing after its construction.
class JpegPlan {
 public:
  // Boxes are inside their images.
  explicit JpegPlan(std::span<const JpegSource> sources);

  std::size_t parameter_bytes() const noexcept;
  std::size_t coefficient_bytes() const noexcept { return blocks_ * jpeg::kBlockValues * 2; }
  std::size_t sample_bytes() const noexcept { return blocks_ * jpeg::kBlockValues; }

  // Writes the parameters to `host`, for a copy to `device`, which is 16-byte aligned.
  JpegLaunch write(std::byte* host, const std::byte* device) const;

 private:
  std::vector<JpegImage> images_;
  std::vector<jpeg::LookUp> look_ups_;
  std::vector<std::uint32_t> groups_;  // [pieces, blocks, pixels][image], and the sum at the end of each
  std::uint64_t blocks_ = 0;
  std::uint32_t most_tables_ = 0;
};

// Queues the three kernels. Errors: io (CUDA's message).
void launch_jpeg(const JpegLaunch& launch, cudaStream_t stream);

}  // namespace shard::gpu
