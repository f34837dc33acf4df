// The indices of files that have none (jpeg/lanes/lane_decoder.hpp):
//
//   find_starts   a thread per lane, 64 lanes of one image per block    files  -> starts of MCUs
//   write_index   a block per image                                     starts -> index
//
// An image whose index cannot be made is not decoded.
#include "cuda/kernels/jpeg/common.cuh"
#include "cuda/kernels/jpeg/ring.cuh"
#include "jpeg/lanes/lane_chain.hpp"

namespace shard::gpu {
namespace {

constexpr std::uint32_t kLanes = jpeg::kLanesOfGroup;
constexpr std::uint32_t kWriters = 256;
// Lanes of an image whose links are in shared memory, where one thread follows them.
constexpr std::uint32_t kLinksAtHand = 256;
// Codes of DC differences in shared memory; those of usual files take about 1,050. Of AC codes few are looked
// up by themselves.
constexpr std::uint32_t kDcAtHand = 1280;
constexpr std::uint32_t kSkipUnits = kSkipsOfFile * sizeof(jpeg::PackedSkip) / sizeof(uint4);

// A pointer to shared memory, kept as it is: the compiler would form it again for each access, from the
// number of the block in its cluster.
template <class T>
__device__ T* in_shared(T* pointer) {
  asm volatile("" : "+l"(pointer));
  __builtin_assume(__isShared(pointer));
  return pointer;
}

// What all lanes of a block know, in shared memory.
struct LaneImage {
  alignas(8) std::uint32_t plan[sizeof(jpeg::ScanPlan) / 4];
  alignas(8) std::uint32_t lanes[sizeof(JpegLanes) / 4];

  __device__ void copy(const JpegImage& image, const JpegLanes& of_image) {
    const auto* plan_there = reinterpret_cast<const std::uint32_t*>(&image.plan);
    const auto* lanes_there = reinterpret_cast<const std::uint32_t*>(&of_image);
    for (std::uint32_t i = threadIdx.x; i < sizeof plan / 4; i += blockDim.x) plan[i] = plan_there[i];
    for (std::uint32_t i = threadIdx.x; i < sizeof lanes / 4; i += blockDim.x) lanes[i] = lanes_there[i];
  }
  __device__ const jpeg::ScanPlan& scan_plan() const { return reinterpret_cast<const jpeg::ScanPlan&>(plan); }
  __device__ const JpegLanes& image_lanes() const { return reinterpret_cast<const JpegLanes&>(lanes); }
};

__device__ jpeg::StartPool pool_of(const JpegLaunch& launch, const JpegLanes& lanes, std::uint32_t number) {
  return {launch.starts + std::uint64_t{lanes.chunk} * jpeg::kStartsOfChunk, launch.links + lanes.chunk,
          launch.taken + number, lanes.plan.chunks};
}

__device__ const jpeg::CodeEntry* codes_of(const JpegLaunch& launch, const JpegTask& task) {
  return launch.codes + std::size_t{task.tables} * jpeg::kLookUpEntries;
}
__device__ const jpeg::PackedSkip* skips_of(const JpegLaunch& launch, std::uint32_t number) {
  return launch.skips + std::size_t{number} * kSkipsOfFile;
}

// `lane`: of this thread, if it `exists`; `behind`: lanes of the group that follow it.
__device__ void find(const jpeg::ScanPlan& plan, const jpeg::Scan<RingBytes>& scan, const JpegLanes& lanes,
                     const jpeg::StartPool& pool, std::uint32_t number, bool exists, std::uint32_t behind,
                     jpeg::Lane* lane) {
  jpeg::LaneDecoder<RingBytes> decoder(plan, scan, pool);
  bool more = exists && decoder.begin(lanes.plan, number);
  for (bool joins = false;; joins = true) {
    while (__any_sync(kAllLanes, more)) {
      const bool there = decoder.fetch();
      if (more && there && decoder.read_codes()) more = decoder.turn();
    }
    if (joins) break;
    if (exists) decoder.publish(*lane);
    __syncthreads();  // what the other lanes have found is there
    more = exists && decoder.join(lane + 1, behind);
  }
  if (exists) decoder.finish(*lane);
}

__global__ void __launch_bounds__(kLanes, 12) find_starts(JpegLaunch launch) {
  alignas(16) __shared__ std::byte rings[kLanes * RingBytes::kStride];
  __shared__ uint4 dc_at_hand[kDcAtHand / 4];
  __shared__ uint4 skips_at_hand[kSkipUnits];
  __shared__ LaneImage here;
  const std::uint32_t number = image_of_block(launch.lanes, launch.made_indices);
  const std::uint32_t of_batch = launch.lane_plans[number].image;
  const JpegImage& image = launch.images[of_batch];
  if (image.usable == 0) return;
  const JpegTask& task = launch.tasks[of_batch];
  here.copy(image, launch.lane_plans[number]);
  const jpeg::CodeEntry* const codes = codes_of(launch, task);
  const bool at_hand = image.dc_entries <= kDcAtHand;
  if (at_hand)
    for (std::uint32_t i = threadIdx.x; i < (image.dc_entries + 3) / 4; i += kLanes)
      dc_at_hand[i] = reinterpret_cast<const uint4*>(codes)[i];
  for (std::uint32_t i = threadIdx.x; i < kSkipUnits; i += kLanes)
    skips_at_hand[i] = reinterpret_cast<const uint4*>(skips_of(launch, number))[i];
  const auto* const skips = in_shared(reinterpret_cast<const jpeg::PackedSkip*>(skips_at_hand));
  __syncthreads();

  const JpegLanes& lanes = here.image_lanes();
  const std::uint32_t group = blockIdx.x - launch.lanes.first[number];
  const std::uint32_t count = lanes.plan.lanes_of(group);
  const bool exists = threadIdx.x < count;
  const std::uint32_t behind = exists ? min(count - threadIdx.x - 1, lanes.plan.parts_behind()) : 0;
  const std::uint32_t lane = jpeg::LanePlan::first_lane(group) + threadIdx.x;
  jpeg::Lane* const result = launch.lane_results + lanes.slot + group * kLanes + threadIdx.x;
  const jpeg::StartPool pool = pool_of(launch, lanes, number);
  const RingBytes bytes(task.frame, task.file.bytes, in_shared(rings + threadIdx.x * RingBytes::kStride));
  const auto* const dc_codes = at_hand ? reinterpret_cast<const jpeg::CodeEntry*>(dc_at_hand) : codes;
  find(*in_shared(&here.scan_plan()), {bytes, image.data_offset, task.file.bytes, codes, skips, dc_codes},
       lanes, pool, lane, exists, behind, result);
  RingBytes::finish();
}

// A chunk of starts at a time, by as many threads.
__device__ jpeg::Fault write_starts(const jpeg::LaneChain<RingBytes>& chain, const jpeg::StartPool& pool,
                                    const jpeg::Lane& lane, const jpeg::LaneEntry& entry,
                                    std::uint32_t thread) {
  jpeg::Fault fault = jpeg::Fault::none;
  const auto keep = [&fault](jpeg::Fault found) {
    if (found != jpeg::Fault::none) fault = found;
  };
  const std::uint32_t count = lane.count;
  std::uint32_t chunk = lane.first_chunk;
  for (std::uint32_t first = 0; first < count; first += jpeg::kStartsOfChunk) {
    if (first != 0) chunk = pool.links[chunk];
    const std::uint32_t number = first + thread;
    if (number >= entry.enter && number < count)
      keep(chain.write(lane, entry, number,
                       pool.starts[std::uint64_t{chunk} * jpeg::kStartsOfChunk + thread]));
  }
  if (thread == 0) keep(chain.write(lane, entry, count, lane.exit));
  return fault;
}

__global__ void __launch_bounds__(kWriters) write_index(JpegLaunch launch) {
  __shared__ LaneImage here;
  __shared__ std::uint32_t fault;
  alignas(16) __shared__ std::byte links_at_hand[kLinksAtHand * sizeof(jpeg::LaneLink)];
  alignas(16) __shared__ std::byte entries_at_hand[kLinksAtHand * sizeof(jpeg::LaneEntry)];
  // For the one thread that reads codes where lanes have not met.
  alignas(16) __shared__ std::byte ring[RingBytes::kStride];
  const std::uint32_t of_batch = launch.lane_plans[blockIdx.x].image;
  JpegImage& image = launch.images[of_batch];
  const JpegTask& task = launch.tasks[of_batch];
  if (image.usable == 0) {
    if (threadIdx.x == 0) *reinterpret_cast<std::uint32_t*>(const_cast<std::byte*>(task.index)) = kNoIndex;
    return;
  }
  here.copy(image, launch.lane_plans[blockIdx.x]);
  if (threadIdx.x == 0) fault = 0;
  __syncthreads();
  const JpegLanes& image_lanes = here.image_lanes();
  const jpeg::LanePlan& plan = image_lanes.plan;
  const jpeg::Lane* const lanes = launch.lane_results + image_lanes.slot;
  const jpeg::StartPool pool = pool_of(launch, image_lanes, blockIdx.x);
  const jpeg::Scan<RingBytes> scan{RingBytes(task.frame, task.file.bytes, ring), image.data_offset,
                                   task.file.bytes, codes_of(launch, task), skips_of(launch, blockIdx.x)};
  const jpeg::IndexTarget target(const_cast<std::byte*>(task.index), here.scan_plan());
  jpeg::LaneChain<RingBytes> chain(here.scan_plan(), scan, plan, pool, lanes, target);
  if (threadIdx.x == 0) chain.begin();
  auto* const links = in_shared(reinterpret_cast<jpeg::LaneLink*>(links_at_hand));
  auto* const entries = in_shared(reinterpret_cast<jpeg::LaneEntry*>(entries_at_hand));

  for (std::uint32_t first = 0; first < plan.lanes; first += kLinksAtHand) {
    const std::uint32_t count = min(kLinksAtHand, plan.lanes - first);
    for (std::uint32_t i = threadIdx.x; i < count; i += kWriters) {
      links[i] = jpeg::LaneLink(lanes[plan.slot_of(first + i)]);
      entries[i] = {};
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      const jpeg::Fault found = chain.follow(links, entries, first, first + count);
      if (found != jpeg::Fault::none) fault = static_cast<std::uint32_t>(found);
    }
    __syncthreads();
    const bool followed = fault == 0;
    __syncthreads();
    if (!followed) break;
    constexpr std::uint32_t kLanesAtOnce = kWriters / jpeg::kStartsOfChunk;
    jpeg::Fault found = jpeg::Fault::none;
    for (std::uint32_t i = threadIdx.x / jpeg::kStartsOfChunk; i < count; i += kLanesAtOnce) {
      const jpeg::LaneEntry entry = entries[i];
      if (entry.enter == jpeg::kNoStart) continue;
      const jpeg::Fault of_lane = write_starts(chain, pool, lanes[plan.slot_of(first + i)], entry,
                                               threadIdx.x % jpeg::kStartsOfChunk);
      if (of_lane != jpeg::Fault::none) found = of_lane;
    }
    if (found != jpeg::Fault::none) atomicMax(&fault, static_cast<std::uint32_t>(found));
    __syncthreads();
  }
  if (threadIdx.x != 0 || fault == 0) return RingBytes::finish();
  if (chain.may_be_wrong()) fault = static_cast<std::uint32_t>(chain.read_whole());
  RingBytes::finish();
  if (fault == 0) return;
  launch.faults[of_batch] = fault;
  image.usable = 0;
  *reinterpret_cast<std::uint32_t*>(const_cast<std::byte*>(task.index)) = kNoIndex;
}

}  // namespace

void launch_jpeg_lanes(const JpegLaunch& launch, cudaStream_t stream) {
  if (launch.made_indices == 0) return;
  cudaMemsetAsync(launch.taken, 0, launch.made_indices * sizeof(std::uint32_t), stream);
  find_starts<<<launch.lanes.count, kLanes, 0, stream>>>(launch);
  write_index<<<launch.made_indices, kWriters, 0, stream>>>(launch);
}

}  // namespace shard::gpu
