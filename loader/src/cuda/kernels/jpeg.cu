#include "cuda/kernels/jpeg.hpp"

#include <cuda_pipeline_primitives.h>

#include <string>

#include "cuda/kernels/jpeg_groups.hpp"
#include "jpeg/colour.hpp"
#include "jpeg/entropy.hpp"
#include "jpeg/idct.hpp"
#include "jpeg/upsample.hpp"
#include "shard/error.hpp"

namespace shard::gpu {
namespace {

constexpr std::uint32_t kLanesOfWarp = 32;
constexpr std::uint32_t kAllLanes = 0xFFFFFFFFU;
// Codes between two looks at the other lanes of a warp.
constexpr std::uint32_t kStepsAtOnce = 4;
// A block of coefficients in shared memory: 32 words, and one more, so that equal places lie in other banks.
constexpr std::uint32_t kStageWords = jpeg::kBlockValues / 2 + 1;

// A file in device memory, read where it is.
class DeviceBytes {
 public:
  static constexpr std::uint32_t kRingBytes = 0;

  __device__ DeviceBytes(const std::byte* file, std::uint32_t, uint4*)
      : words_(reinterpret_cast<const std::uint32_t*>(file)) {}
  __device__ std::uint32_t byte(std::uint32_t i) const { return words_[i / 4] >> (8 * (i % 4)) & 0xFFU; }
  __device__ std::uint32_t word(std::uint32_t i) const {
    // The second word has byte i + 3, so it is there.
    const std::uint32_t bytes = __funnelshift_r(words_[i / 4], words_[(i + 3) / 4], 8 * (i % 4));
    return __byte_perm(bytes, 0, 0x0123);
  }
  __device__ void start(std::uint32_t) const {}
  __device__ void reach(std::uint32_t) const {}
  __device__ static void finish() {}

 private:
  const std::uint32_t* words_;
};

// The same, read through a ring of four chunks of 16 bytes per lane, which the copy unit fills ahead.
//
//   chunk of the file   c      c + 1   c + 2   c + 3        c: of the next byte to load
//   in the ring         there  there   on its way, one group of copies each
class RingBytes {
 public:
  static constexpr std::uint32_t kChunkBytes = 16;
  static constexpr std::uint32_t kChunks = 4;
  static constexpr std::uint32_t kRingBytes = kChunks * kChunkBytes;

  // `ring`: chunk k of this lane is ring[k * kJpegPieces], so that lanes use different banks.
  __device__ RingBytes(const std::byte* file, std::uint32_t size, uint4* ring)
      : file_(reinterpret_cast<const uint4*>(file)),
        ring_(ring),
        end_((size + kChunkBytes - 1) / kChunkBytes) {}
  __device__ std::uint32_t byte(std::uint32_t i) const {
    return reinterpret_cast<const std::uint8_t*>(file_)[i];
  }
  __device__ std::uint32_t word(std::uint32_t i) const {
    const std::uint32_t bytes = __funnelshift_r(ring_word(i / 4), ring_word((i + 3) / 4), 8 * (i % 4));
    return __byte_perm(bytes, 0, 0x0123);
  }
  __device__ void start(std::uint32_t at) {
    // Copies that are still on their way would come over the new ones.
    __pipeline_wait_prior(0);
    next_ = at / kChunkBytes;
    for (std::uint32_t i = 0; i < kChunks; ++i) fetch();
    __pipeline_wait_prior(2);
  }
  __device__ void reach(std::uint32_t at) {
    if (at / kChunkBytes + kChunks == next_) return;
    // At most 16 bytes further, so one chunk.
    fetch();
    __pipeline_wait_prior(2);
  }
  // Shared memory may be another block's as soon as this one has ended.
  __device__ static void finish() { __pipeline_wait_prior(0); }

 private:
  __device__ std::uint32_t ring_word(std::uint32_t i) const {
    return reinterpret_cast<const std::uint32_t*>(ring_ + i / 4 % kChunks * kJpegPieces)[i % 4];
  }
  __device__ void fetch() {
    if (next_ < end_)
      __pipeline_memcpy_async(ring_ + next_ % kChunks * kJpegPieces, file_ + next_, kChunkBytes);
    __pipeline_commit();
    ++next_;
  }

  const uint4* file_;
  uint4* ring_;
  std::uint32_t end_;       // chunks
  std::uint32_t next_ = 0;  // to be fetched
};

// The image of this block of a kernel.
__device__ std::uint32_t image_of_block(const JpegGroups& groups, std::uint32_t images) {
  std::uint32_t low = 0;
  for (std::uint32_t high = images; high - low > 1;) {
    const std::uint32_t middle = (low + high) / 2;
    if (groups.first[middle] <= blockIdx.x)
      low = middle;
    else
      high = middle;
  }
  return low;
}

__device__ jpeg::EntryPoint entry_of(const JpegImage& image, std::uint32_t piece) {
  const std::uint32_t pieces = image.layout.pieces();
  const auto* head = reinterpret_cast<const std::uint32_t*>(image.index);
  jpeg::EntryPoint entry;
  entry.position = piece < pieces ? head[4 + piece] : head[3];
  if (piece >= pieces) return entry;
  const auto* predictors = reinterpret_cast<const std::uint16_t*>(image.index + 16 + 4 * std::size_t{pieces});
  for (std::uint32_t c = 0; c < image.layout.components; ++c)
    entry.predictors[c] = predictors[std::size_t{piece} * image.layout.components + c];
  return entry;
}

// Blocks of coefficients are collected in shared memory. Whenever lanes have completed theirs, the whole warp
// writes each of them, zeros too, as one line of 128 bytes: so nothing has to be cleared before.
template <class Bytes>
__global__ void __launch_bounds__(kJpegPieces) decode_pieces(JpegLaunch launch) {
  extern __shared__ uint4 shared_units[];  // rings, then look-ups of the image
  auto* const shared_words =
      reinterpret_cast<std::uint32_t*>(shared_units) + kJpegPieces * Bytes::kRingBytes / 4;
  alignas(8) __shared__ std::uint32_t image_words[sizeof(JpegImage) / 4];
  __shared__ std::uint32_t stages[kJpegPieces * kStageWords];
  const JpegImage& image = reinterpret_cast<const JpegImage&>(image_words);
  const std::uint32_t number = image_of_block(launch.pieces, launch.count);
  const auto* image_there = reinterpret_cast<const std::uint32_t*>(launch.images + number);
  for (std::uint32_t i = threadIdx.x; i < sizeof(JpegImage) / 4; i += kJpegPieces)
    image_words[i] = image_there[i];
  for (std::uint32_t i = threadIdx.x; i < kJpegPieces * kStageWords; i += kJpegPieces) stages[i] = 0;
  __syncthreads();
  const auto* tables = reinterpret_cast<const std::uint32_t*>(launch.look_ups + std::size_t{image.look_ups} *
                                                                                    jpeg::kLookUpEntries);
  for (std::uint32_t i = threadIdx.x; i < image.tables * (jpeg::kLookUpEntries / 2); i += kJpegPieces)
    shared_words[i] = tables[i];
  __syncthreads();

  const jpeg::Range columns = jpeg::pieces_of_columns(image.window.columns);
  const std::uint32_t mine = (blockIdx.x - launch.pieces.first[number]) * kJpegPieces + threadIdx.x;
  bool active = mine < image.window.rows.size() * columns.size();
  const std::uint32_t piece =
      active ? (image.window.rows.begin + mine / columns.size()) * image.layout.pieces_of_row() +
                   columns.begin + mine % columns.size()
             : 0;
  const jpeg::Scan<Bytes> scan{Bytes(image.file, image.file_bytes, shared_units + threadIdx.x),
                               image.data_offset, image.file_bytes,
                               reinterpret_cast<const std::uint16_t*>(shared_words), image.dc_tables};
  jpeg::PieceDecoder<Bytes> decoder(image.layout, scan, piece, entry_of(image, piece));
  const auto line_of = [&]() {
    const auto block = decoder.block();
    const jpeg::Plane& plane = image.layout.planes[block.component];
    const std::uint32_t row = block.row - image.window.rows.begin * plane.v;
    const std::uint32_t column = block.column - image.window.columns.begin * plane.h;
    return image.blocks + image.first_block[block.component] +
           std::uint64_t{row} * (image.window.columns.size() * plane.h) + column;
  };
  const std::uint32_t lane = threadIdx.x % kLanesOfWarp;
  std::uint32_t* const stages_of_warp = stages + (threadIdx.x - lane) * kStageWords;
  auto* const stage = reinterpret_cast<std::int16_t*>(stages_of_warp + lane * kStageWords);
  const auto put = [stage](std::uint32_t k, std::int16_t value) { stage[k] = value; };
  auto* const lines = reinterpret_cast<std::uint32_t*>(launch.coefficients);
  std::uint64_t line = line_of();
  while (__any_sync(kAllLanes, active)) {
    bool complete = false;
    if (active)
      for (std::uint32_t i = 0; i < kStepsAtOnce && !complete; ++i) complete = decoder.step(put);
    std::uint32_t left = __ballot_sync(kAllLanes, complete);
    __syncwarp();  // what other lanes have put is there
    for (; left != 0; left &= left - 1) {
      const int other = __ffs(static_cast<int>(left)) - 1;
      const std::uint64_t target = __shfl_sync(kAllLanes, line, other);
      std::uint32_t& word = stages_of_warp[static_cast<std::uint32_t>(other) * kStageWords + lane];
      lines[target * (jpeg::kBlockValues / 2) + lane] = word;
      word = 0;
    }
    __syncwarp();
    if (!complete) continue;
    active = decoder.next();
    if (active) {
      line = line_of();
    } else if (const jpeg::Fault fault = decoder.finish(entry_of(image, piece + 1));
               fault != jpeg::Fault::none) {
      atomicMax(launch.faults + number, static_cast<std::uint32_t>(fault));
    }
  }
  Bytes::finish();
}

__global__ void __launch_bounds__(kJpegBlocks) make_samples(JpegLaunch launch) {
  __shared__ std::uint16_t quantization[jpeg::kMostComponents][jpeg::kBlockValues];
  const std::uint32_t number = image_of_block(launch.blocks, launch.count);
  const JpegImage& image = launch.images[number];
  for (std::uint32_t i = threadIdx.x; i < jpeg::kMostComponents * jpeg::kBlockValues; i += kJpegBlocks)
    quantization[i / jpeg::kBlockValues][i % jpeg::kBlockValues] =
        image.quantization[i / jpeg::kBlockValues][i % jpeg::kBlockValues];
  __syncthreads();
  const std::uint32_t block = (blockIdx.x - launch.blocks.first[number]) * kJpegBlocks + threadIdx.x;
  if (block >= image.first_block[jpeg::kMostComponents]) return;
  std::uint32_t component = 0;
  while (block >= image.first_block[component + 1]) ++component;
  alignas(16) std::int16_t coefficients[jpeg::kBlockValues];
  const auto* from =
      reinterpret_cast<const uint4*>(launch.coefficients + (image.blocks + block) * jpeg::kBlockValues);
#pragma unroll
  for (std::uint32_t i = 0; i < jpeg::kBlockValues / 8; ++i)
    reinterpret_cast<uint4*>(coefficients)[i] = from[i];
  alignas(8) std::uint8_t samples[jpeg::kBlockValues];
  jpeg::inverse_dct(coefficients, quantization[component], samples, jpeg::kBlockSide);
  const std::uint32_t columns = image.window.columns.size() * image.layout.planes[component].h;
  const std::uint32_t mine = block - image.first_block[component];
  std::uint8_t* const plane =
      launch.samples + (image.blocks + image.first_block[component]) * jpeg::kBlockValues;
  std::uint8_t* const target =
      plane + (std::size_t{mine / columns} * columns * jpeg::kBlockSide + mine % columns) * jpeg::kBlockSide;
#pragma unroll
  for (std::uint32_t y = 0; y < jpeg::kBlockSide; ++y)
    *reinterpret_cast<uint2*>(target + std::size_t{y} * columns * jpeg::kBlockSide) =
        reinterpret_cast<const uint2*>(samples)[y];
}

__global__ void __launch_bounds__(kJpegQuads) make_pixels(JpegLaunch launch) {
  const std::uint32_t number = image_of_block(launch.pixels, launch.count);
  const JpegImage& image = launch.images[number];
  const std::uint32_t quads = (image.box.width + kJpegQuad - 1) / kJpegQuad;
  const std::uint64_t mine =
      std::uint64_t{blockIdx.x - launch.pixels.first[number]} * kJpegQuads + threadIdx.x;
  if (mine >= std::uint64_t{quads} * image.box.height) return;
  const auto row = static_cast<std::uint32_t>(mine / quads);
  const std::uint32_t first = static_cast<std::uint32_t>(mine % quads) * kJpegQuad;
  const std::uint32_t channels = image.layout.channels();
  std::uint8_t pixels[kJpegQuad][jpeg::kMostComponents];
#pragma unroll
  for (std::uint32_t c = 0; c < jpeg::kMostComponents; ++c) {
    if (c >= channels) break;
    const jpeg::Plane& plane = image.layout.planes[c];
    const jpeg::Upsampling way = jpeg::upsampling_of(image.layout, c);
    const jpeg::Samples samples{launch.samples + (image.blocks + image.first_block[c]) * jpeg::kBlockValues,
                                image.window.columns.begin * plane.h * jpeg::kBlockSide,
                                image.window.rows.begin * plane.v * jpeg::kBlockSide,
                                image.window.columns.size() * plane.h * jpeg::kBlockSide};
#pragma unroll
    for (std::uint32_t i = 0; i < kJpegQuad; ++i)
      if (first + i < image.box.width)
        pixels[i][c] = jpeg::upsampled(image.layout, plane, way, samples, image.box.left + first + i,
                                       image.box.top + row);
  }
  std::uint8_t* target = image.pixels + (std::size_t{row} * image.box.width + first) * channels;
#pragma unroll
  for (std::uint32_t i = 0; i < kJpegQuad; ++i) {
    if (first + i >= image.box.width) return;
    jpeg::convert_colour(image.layout.colour, pixels[i]);
#pragma unroll
    for (std::uint32_t c = 0; c < jpeg::kMostComponents; ++c)
      if (c < channels) *target++ = pixels[i][c];
  }
}

}  // namespace

void launch_jpeg(const JpegLaunch& launch, cudaStream_t stream) {
  if (launch.count == 0) return;
  const std::size_t tables = std::size_t{launch.most_tables} * jpeg::kLookUpEntries * sizeof(std::uint16_t);
  if (launch.fetch_ahead) {
    const std::size_t rings = std::size_t{kJpegPieces} * RingBytes::kRingBytes;
    // With eight tables the block has more than the 48 KiB that need no asking.
    cudaFuncSetAttribute(decode_pieces<RingBytes>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         static_cast<int>(rings + tables));
    decode_pieces<RingBytes><<<launch.pieces.count, kJpegPieces, rings + tables, stream>>>(launch);
  } else {
    decode_pieces<DeviceBytes><<<launch.pieces.count, kJpegPieces, tables, stream>>>(launch);
  }
  make_samples<<<launch.blocks.count, kJpegBlocks, 0, stream>>>(launch);
  make_pixels<<<launch.pixels.count, kJpegQuads, 0, stream>>>(launch);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess)
    throw Error(ErrorCode::io, std::string("decoding JPEGs on the GPU: ") + cudaGetErrorString(error));
}

}  // namespace shard::gpu
