#include "cuda/kernels/jpeg_index.hpp"

#include <string>

#include "cuda/kernels/jpeg_bytes.cuh"
#include "jpeg/lane_chain.hpp"
#include "shard/error.hpp"

namespace shard::gpu {
namespace {

constexpr std::uint32_t kLanes = jpeg::kLanesOfGroup;
constexpr std::uint32_t kWriters = 128;
// Slots of an image that are copied to shared memory, where one thread follows them.
constexpr std::uint32_t kSlotsAtHand = 2 * jpeg::kLanesOfGroup;
// Codes between two looks at whether a block is complete.
constexpr std::uint32_t kCodesAtOnce = 4;

using RingFile = FileThroughRing<kLanes>;
using LookUpWord = std::uint32_t;

// What lanes need of a JpegImage, in shared memory.
struct LaneImage {
  jpeg::Layout layout;
  jpeg::McuCodes codes;
  JpegLanes lanes;
};

// A block's first step.
__device__ void prepare(const JpegLaunch& launch, const JpegIndexLaunch& index, std::uint32_t number,
                        LaneImage& here) {
  if (threadIdx.x != 0) return;
  const JpegImage& image = launch.images[number];
  here.layout = image.layout;
  here.lanes = index.images[number];
  jpeg::make_codes(here.layout, image.dc_tables, here.codes);
}

__device__ jpeg::StartPool pool_of(const JpegIndexLaunch& index, const JpegLanes& lanes,
                                   std::uint32_t number) {
  return {index.starts + std::uint64_t{lanes.chunk} * jpeg::kStartsOfChunk, index.links + lanes.chunk,
          index.taken + number, lanes.plan.chunks};
}

__device__ const std::uint16_t* look_ups_of(const JpegLaunch& launch, const JpegImage& image) {
  return launch.look_ups + std::size_t{image.look_ups} * jpeg::kLookUpEntries;
}

// The image whose groups of lanes have this block.
__device__ std::uint32_t image_of_group(const JpegGroups& groups, std::uint32_t images) {
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

template <class Bytes>
__global__ void __launch_bounds__(kLanes, 16) find_starts(JpegLaunch launch, JpegIndexLaunch index) {
  extern __shared__ uint4 shared_units[];  // rings, then look-ups of the image
  auto* const look_ups = reinterpret_cast<LookUpWord*>(shared_units) + kLanes * Bytes::kRingBytes / 4;
  __shared__ LaneImage here;
  const std::uint32_t number = image_of_group(index.groups, launch.count);
  const JpegImage& image = launch.images[number];
  if (launch.faults[number] != 0) return;  // of its header
  prepare(launch, index, number, here);
  const auto* tables = reinterpret_cast<const LookUpWord*>(look_ups_of(launch, image));
  for (std::uint32_t i = threadIdx.x; i < image.tables * (jpeg::kLookUpEntries / 2); i += kLanes)
    look_ups[i] = tables[i];
  __syncthreads();

  const jpeg::LanePlan& plan = here.lanes.plan;
  const std::uint32_t group = blockIdx.x - index.groups.first[number];
  const std::uint32_t count = plan.lanes_of(group);
  const bool exists = threadIdx.x < count;
  jpeg::Lane* const lane = index.lanes + here.lanes.slot + group * kLanes + threadIdx.x;
  const jpeg::StartPool pool = pool_of(index, here.lanes, number);
  const jpeg::Scan<Bytes> scan{Bytes(image.file, image.file_bytes, shared_units + threadIdx.x),
                               image.data_offset, image.file_bytes,
                               reinterpret_cast<const std::uint16_t*>(look_ups)};
  jpeg::LaneDecoder<Bytes> decoder(here.codes, here.layout.restart_interval != 0, scan, pool);
  bool more = exists && decoder.begin(plan, jpeg::LanePlan::first_lane(group) + threadIdx.x);
  for (bool joins = false;; joins = true) {
    while (more) {
      bool complete = false;
      for (std::uint32_t i = 0; i < kCodesAtOnce && !complete; ++i) complete = decoder.step();
      if (complete) more = decoder.turn();
    }
    if (joins) break;
    if (exists) decoder.publish(*lane);
    __syncthreads();  // what the other lanes have found is there
    more = exists && decoder.join(lane + 1, count - threadIdx.x - 1);
  }
  if (exists) decoder.finish(*lane);
  Bytes::finish();
}

// A chunk of starts at a time, by as many threads.
__device__ jpeg::Fault write_starts(const jpeg::LaneChain<FileInPlace>& chain, const jpeg::StartPool& pool,
                                    const jpeg::Lane& lane, std::uint32_t thread) {
  jpeg::Fault fault = jpeg::Fault::none;
  const auto keep = [&fault](jpeg::Fault found) {
    if (found != jpeg::Fault::none) fault = found;
  };
  std::uint32_t chunk = lane.first_chunk;
  for (std::uint32_t first = 0; first < lane.count; first += jpeg::kStartsOfChunk) {
    if (first != 0) chunk = pool.links[chunk];
    const std::uint32_t number = first + thread;
    if (number >= lane.enter && number < lane.count)
      keep(chain.write(lane, number, pool.starts[std::uint64_t{chunk} * jpeg::kStartsOfChunk + thread]));
  }
  if (thread == 0) keep(chain.write(lane, lane.count, lane.exit));
  return fault;
}

__global__ void __launch_bounds__(kWriters) write_index(JpegLaunch launch, JpegIndexLaunch index) {
  __shared__ LaneImage here;
  __shared__ std::uint32_t fault;
  alignas(16) __shared__ std::uint32_t slots[kSlotsAtHand * sizeof(jpeg::Lane) / 4];
  const std::uint32_t number = blockIdx.x;
  const JpegImage& image = launch.images[number];
  if (launch.faults[number] != 0) return;  // of its header
  prepare(launch, index, number, here);
  __syncthreads();
  const jpeg::LanePlan& plan = here.lanes.plan;
  jpeg::Lane* lanes = index.lanes + here.lanes.slot;
  if (plan.slots() <= kSlotsAtHand) {
    const auto* there = reinterpret_cast<const std::uint32_t*>(lanes);
    for (std::uint32_t i = threadIdx.x; i < plan.slots() * (sizeof(jpeg::Lane) / 4); i += kWriters)
      slots[i] = there[i];
    lanes = reinterpret_cast<jpeg::Lane*>(slots);
    __syncthreads();
  }
  const jpeg::StartPool pool = pool_of(index, here.lanes, number);
  const jpeg::Scan<FileInPlace> scan{FileInPlace(image.file, image.file_bytes, nullptr), image.data_offset,
                                     image.file_bytes, look_ups_of(launch, image)};
  const jpeg::IndexTarget target(here.lanes.index, here.layout);
  jpeg::LaneChain<FileInPlace> chain(here.layout, here.codes, scan, plan, pool, lanes, target);
  if (threadIdx.x == 0) fault = static_cast<std::uint32_t>(chain.follow());
  __syncthreads();
  const bool followed = fault == 0;
  __syncthreads();

  if (followed) {
    constexpr std::uint32_t kLanesAtOnce = kWriters / jpeg::kStartsOfChunk;
    jpeg::Fault found = jpeg::Fault::none;
    for (std::uint32_t i = threadIdx.x / jpeg::kStartsOfChunk; i < plan.lanes; i += kLanesAtOnce) {
      const jpeg::Lane& lane = lanes[plan.slot_of(i)];
      if (lane.enter == jpeg::kNoStart) continue;
      const jpeg::Fault of_lane = write_starts(chain, pool, lane, threadIdx.x % jpeg::kStartsOfChunk);
      if (of_lane != jpeg::Fault::none) found = of_lane;
    }
    if (found != jpeg::Fault::none) atomicMax(&fault, static_cast<std::uint32_t>(found));
  }
  __syncthreads();
  if (threadIdx.x != 0 || fault == 0) return;
  if (chain.may_be_wrong()) fault = static_cast<std::uint32_t>(chain.read_whole());
  if (fault != 0) atomicMax(launch.faults + number, fault);
}

}  // namespace

void launch_jpeg_index(const JpegLaunch& launch, const JpegIndexLaunch& index, cudaStream_t stream) {
  if (launch.count == 0) return;
  cudaMemsetAsync(index.taken, 0, launch.count * sizeof(std::uint32_t), stream);
  const std::size_t tables = std::size_t{launch.most_tables} * jpeg::kLookUpEntries * sizeof(std::uint16_t);
  if (launch.fetch_ahead) {
    const std::size_t rings = std::size_t{kLanes} * RingFile::kRingBytes;
    find_starts<RingFile><<<index.groups.count, kLanes, rings + tables, stream>>>(launch, index);
  } else {
    find_starts<FileInPlace><<<index.groups.count, kLanes, tables, stream>>>(launch, index);
  }
  write_index<<<launch.count, kWriters, 0, stream>>>(launch, index);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess)
    throw Error(ErrorCode::io, std::string("indexing JPEGs on the GPU: ") + cudaGetErrorString(error));
}

}  // namespace shard::gpu
