// JPEGs decoded by kernels, from frames to upright pixels, bit for bit as libshard's reference
// (jpeg/decode.hpp) and libjpeg-turbo.
//
//   launch_jpeg   a block per image           headers                 -> JpegImage, tables of codes
//                 a thread per lane           files without index     -> starts of MCUs, then a block per
//                                                                        image -> index
//                 a thread per piece          files, indices          -> coefficients
//                 a thread per block          coefficients            -> samples
//                 a thread per 4 x 2 pixels   samples                 -> pixels of the box
//
// A batch is planned on the host (JpegPlan) from what the heads of shards say, before a frame is read. Frames
// and indices may hold any bytes: kernels stay inside their buffers and end, and say which image is damaged.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "jpeg/frame_file.hpp"
#include "jpeg/huffman.hpp"
#include "jpeg/lanes/lane_decoder.hpp"
#include "jpeg/region.hpp"
#include "jpeg/skip_table.hpp"

namespace shard::gpu {

// An image of a batch, and which of its pixels are wanted. Pointers: device memory.
struct JpegSource {
  jpeg::FrameFile file;  // passed check_frame_file()
  jpeg::PixelBox box;    // inside the upright image
  // A frame, or a file as it is; 16-byte aligned, readable up to a multiple of 16 bytes.
  const std::byte* frame = nullptr;
  // 4-byte aligned, of index_bytes(). Null: behind the file in its frame.
  const std::byte* index = nullptr;
  // The whole upright image, rows of `channels` bytes per pixel without gaps. Only the box is written.
  std::byte* pixels = nullptr;
  // 1 (of one component), 3 (R, G, B), or 4: the four components as libjpeg delivers them.
  std::uint32_t channels = 3;
  // The file has no index; kernels make it in the workspace (jpeg/lanes/lane_decoder.hpp).
  bool makes_index = false;
};

struct JpegImage;  // kernels/jpeg/image.hpp
struct JpegTask;
struct JpegLanes;

// Which blocks of a kernel work on which image: those from first[i] to first[i + 1].
struct JpegGroups {
  const std::uint32_t* first = nullptr;
  std::uint32_t count = 0;
};

// All pointers: device memory.
struct JpegLaunch {
  const JpegTask* tasks = nullptr;
  std::uint32_t count = 0;
  JpegGroups pieces;
  std::uint32_t block_pieces = 0;
  JpegGroups blocks;
  JpegGroups pixels;
  JpegGroups lanes;                       // of the images whose index is made
  const JpegLanes* lane_plans = nullptr;  // of these images
  jpeg::Lane* lane_results = nullptr;
  jpeg::McuStart* starts = nullptr;
  std::uint32_t* links = nullptr;  // of chunks of starts
  jpeg::PackedSkip* skips = nullptr;
  std::uint32_t* taken = nullptr;  // chunks, of each of these images
  std::uint32_t made_indices = 0;  // these images
  JpegImage* images = nullptr;
  jpeg::CodeEntry* codes = nullptr;
  std::int16_t* coefficients = nullptr;
  std::uint8_t* samples = nullptr;
  // Of each image, when the kernels have ended: 0, or a jpeg::Fault. Then its pixels are undefined.
  std::uint32_t* faults = nullptr;
};

// What a batch takes. Borrows nothing after its construction.
class JpegPlan {
 public:
  // indices: of files without one, behind them in their frames; `index`, `box` and `pixels` of sources are
  // not used. An index that cannot be made has a head that fits no file.
  enum class Make : std::uint8_t { pixels, indices };
  explicit JpegPlan(std::span<const JpegSource> sources, Make make = Make::pixels);
  JpegPlan(const JpegPlan&) = delete;
  JpegPlan& operator=(const JpegPlan&) = delete;
  ~JpegPlan();

  // Of write(): `host` and `device`, 16-byte aligned.
  std::size_t parameter_bytes() const noexcept;
  // 256-byte aligned device memory that nothing else uses until the kernels have ended. At most the sum of
  // jpeg_workspace_bytes() of its images.
  std::size_t workspace_bytes() const noexcept;

  // Writes the parameters to `host`, for a copy to `device`.
  JpegLaunch write(std::byte* host, const std::byte* device, std::byte* workspace) const;

 private:
  void add_lanes(std::uint32_t image, const jpeg::Layout& layout);

  Make make_;
  std::vector<JpegTask> tasks_;
  std::vector<std::uint32_t> groups_;  // [pieces, blocks, pixels][image], and the sum at the end of each
  std::uint32_t block_pieces_ = 0;
  std::vector<JpegLanes> lanes_;
  std::vector<std::uint32_t> lane_groups_{0};
  std::uint32_t slots_ = 0;        // of lanes
  std::uint32_t chunks_ = 0;       // of starts
  std::uint64_t index_bytes_ = 0;  // of indices that are made
  std::uint64_t lines_ = 0;        // blocks of coefficients
  std::uint32_t tables_ = 0;
};

// What an image takes of the workspace if all of it is decoded. An index that is made takes about 0.7 bytes
// per byte of the file more.
std::uint64_t jpeg_workspace_bytes(const jpeg::FrameFile& file, bool makes_index = false) noexcept;

// Queues the kernels. Errors: io (CUDA's message).
void launch_jpeg(const JpegLaunch& launch, cudaStream_t stream);

}  // namespace shard::gpu
