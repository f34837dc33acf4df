// The index of JPEGs that have none, made by kernels from the files as they are (jpeg/lane_decoder.hpp); bit
// for bit that of jpeg/index_builder.hpp. launch_jpeg() decodes with it afterwards.
//
//   launch_jpeg_index   a thread per lane     files  -> starts of MCUs     64 lanes of one image per block
//                       a block per image     starts -> index
//
// Files may hold any bytes: kernels stay inside their buffers and end, and say which image is damaged.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cuda/kernels/jpeg.hpp"
#include "jpeg/lane_decoder.hpp"

namespace shard::gpu {

// How an image is divided, and where its part of the workspace begins.
struct JpegLanes {
  jpeg::LanePlan plan;
  std::uint32_t slot = 0;
  std::uint32_t chunk = 0;
  std::byte* index = nullptr;
};

// All pointers: device memory.
struct JpegIndexLaunch {
  const JpegLanes* images = nullptr;
  JpegGroups groups;  // of lanes
  jpeg::Lane* lanes = nullptr;
  jpeg::McuStart* starts = nullptr;
  std::uint32_t* links = nullptr;  // of chunks
  std::uint32_t* taken = nullptr;  // chunks of each image
};

// What is known of an image before its file is read.
struct JpegIndexSource {
  std::uint32_t mcus = 0;
  std::uint32_t file_bytes = 0;  // less than jpeg::kMostIndexedBytes
  // Device memory, 4-byte aligned, jpeg::index_bytes() of its layout. The image's JpegImage::index.
  std::byte* index = nullptr;
};

// What a batch takes, and its parameters. Borrows nothing after its construction.
class JpegIndexPlan {
 public:
  explicit JpegIndexPlan(std::span<const JpegIndexSource> sources);

  std::size_t parameter_bytes() const noexcept;
  // About 1 byte per byte of the files.
  std::size_t workspace_bytes() const noexcept;

  // Writes the parameters to `host`, for a copy to `device`. That and `workspace`, which is device memory that
  // is used during the launch only, are 16-byte aligned.
  JpegIndexLaunch write(std::byte* host, const std::byte* device, std::byte* workspace) const;

 private:
  std::vector<JpegLanes> images_;
  std::vector<std::uint32_t> groups_;  // of each image the first one, and their sum
  std::uint32_t slots_ = 0;
  std::uint32_t chunks_ = 0;
};

// Queues the kernels, for the images of `launch`, of which only pixels, boxes and windows may be missing.
// Faults are added to those of `launch`. Errors: io (CUDA's message).
void launch_jpeg_index(const JpegLaunch& launch, const JpegIndexLaunch& index, cudaStream_t stream);

}  // namespace shard::gpu
