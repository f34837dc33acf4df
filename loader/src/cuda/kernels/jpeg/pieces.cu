// A thread per piece: files and indices -> coefficients.
//
// The pieces of a block are sorted by their length, so that the lanes of a warp end together. Each lane takes
// a few codes per round. Blocks of coefficients are collected in shared memory. Whenever lanes have
// completed theirs, the warp writes four of them at a time, zeros too, each as one line of 128 bytes: so
// nothing has to be cleared before.
#include "cuda/kernels/jpeg/common.cuh"
#include "cuda/kernels/jpeg/ring.cuh"

namespace shard::gpu {
namespace {

// A block of coefficients in shared memory: 8 units of 16 bytes, and one more, so that the same place of
// other lanes lies in other banks.
constexpr std::uint32_t kUnitsOfLine = jpeg::kBlockValues / 8;
constexpr std::uint32_t kUnitsOfStage = kUnitsOfLine + 1;
constexpr std::uint32_t kLinesAtOnce = kLanesOfWarp / kUnitsOfLine;
// What fits into shared memory; the codes of an image with more are read from device memory. Those of usual
// files take about 2,600.
constexpr std::uint32_t kSharedCodes = 3072;

// The index of an image, which may have any entries.
class Entries {
 public:
  __device__ Entries(const jpeg::ScanPlan& plan, const std::byte* index)
      : head_(reinterpret_cast<const std::uint32_t*>(index)),
        count_(plan.pieces_of_row() * plan.mcu_rows),
        components_(plan.components) {}
  __device__ std::uint32_t position(std::uint32_t piece) const {
    return piece < count_ ? head_[4 + piece] : head_[3];
  }
  __device__ jpeg::EntryPoint operator[](std::uint32_t piece) const {
    jpeg::EntryPoint entry;
    entry.position = position(piece);
    if (piece >= count_) return entry;
    const auto* predictors = reinterpret_cast<const std::uint16_t*>(head_ + 4 + count_);
#pragma unroll
    for (std::uint32_t c = 0; c < jpeg::kMostComponents; ++c)
      if (c < components_) entry.predictors[c] = predictors[std::size_t{piece} * components_ + c];
    return entry;
  }

 private:
  const std::uint32_t* head_;
  std::uint32_t count_;
  std::uint32_t components_;
};

// Of a multiprocessor, whose shared memory has room for these.
template <std::uint32_t kThreads>
constexpr std::uint32_t kBlocksAtOnce = kThreads == kJpegPieces ? 5 : 11;

// The memory that the warps of a block share.
template <std::uint32_t kThreads>
struct Shared {
  alignas(16) std::byte rings[RingBytes::kStride * kThreads];
  uint4 stages[kThreads * kUnitsOfStage];
  std::uint32_t lengths[kThreads];
  uint2 complete[kThreads];  // blocks of a warp: their lines, and where they are in `stages`
  std::uint8_t sorted[kThreads];
  std::uint32_t plan[sizeof(jpeg::ScanPlan) / 4];
  alignas(16) jpeg::CodeEntry codes[kSharedCodes];
};

// Which of the block's pieces this thread takes: the longest first.
template <std::uint32_t kThreads>
__device__ std::uint32_t sorted_piece(Shared<kThreads>& shared, std::uint32_t length) {
  shared.lengths[threadIdx.x] = length;
  __syncthreads();
  std::uint32_t rank = 0;
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    const std::uint32_t other = shared.lengths[i];
    rank += other > length || (other == length && i < threadIdx.x) ? 1 : 0;
  }
  shared.sorted[rank] = static_cast<std::uint8_t>(threadIdx.x);
  __syncthreads();
  return shared.sorted[threadIdx.x];
}

// Writes the lines of the lanes that have completed theirs. line(): of this lane.
template <std::uint32_t kThreads, class Line>
__device__ void write_lines(Shared<kThreads>& shared, bool complete, const Line& line, uint4* coefficients) {
  const std::uint32_t complete_lanes = __ballot_sync(kAllLanes, complete);
  if (complete_lanes == 0) return;
  const std::uint32_t lane = threadIdx.x % kLanesOfWarp;
  uint2* const of_warp = shared.complete + threadIdx.x - lane;
  if (complete) of_warp[__popc(complete_lanes & ((1U << lane) - 1))] = {line(), threadIdx.x * kUnitsOfStage};
  __syncwarp();  // what other lanes have put is there, too
  const auto count = static_cast<std::uint32_t>(__popc(complete_lanes));
  uint4* const target = coefficients + lane % kUnitsOfLine;
  uint4* const stage = shared.stages + lane % kUnitsOfLine;
#pragma unroll 1
  for (std::uint32_t i = lane / kUnitsOfLine; i < count; i += kLinesAtOnce) {
    const uint2 place = of_warp[i];
    target[std::size_t{place.x} * kUnitsOfLine] = stage[place.y];
    stage[place.y] = uint4{};
  }
  __syncwarp();
}

template <std::uint32_t kThreads>
__device__ jpeg::Fault decode(Shared<kThreads>& shared, const jpeg::ScanPlan& plan,
                              const jpeg::Scan<RingBytes>& scan, const Entries& entries, std::uint32_t piece,
                              bool active, uint4* coefficients) {
  jpeg::PieceDecoder<RingBytes> decoder(plan, scan);
  auto* const stage = reinterpret_cast<std::int16_t*>(shared.stages + threadIdx.x * kUnitsOfStage);
  const auto put = [stage](std::uint32_t k, std::int16_t value) { stage[k] = value; };
  jpeg::Fault fault = jpeg::Fault::none;
  if (active) decoder.begin(piece, entries[piece]);
  while (__any_sync(kAllLanes, active)) {
    bool complete = false;
    const bool there = decoder.fetch();
    if (active && there) complete = decoder.read_codes(put);
    write_lines(
        shared, complete, [&] { return decoder.line(); }, coefficients);
    if (complete) {
      active = decoder.next();
      if (!active) fault = decoder.finish(entries[piece + 1]);
    }
  }
  return fault;
}

// Works on the images whose codes fit into shared memory, or on the others.
template <std::uint32_t kThreads, bool kShares>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce<kThreads>) decode_pieces(JpegLaunch launch) {
  extern __shared__ uint4 shared_units[];
  auto& shared = *reinterpret_cast<Shared<kThreads>*>(shared_units);
  const std::uint32_t number = image_of_block(launch.pieces, launch.count);
  const JpegImage& image = launch.images[number];
  if (image.usable == 0 || (image.code_entries <= kSharedCodes) != kShares) return;
  const JpegTask& task = launch.tasks[number];
  const auto* plan_there = reinterpret_cast<const std::uint32_t*>(&image.plan);
  for (std::uint32_t i = threadIdx.x; i < sizeof(jpeg::ScanPlan) / 4; i += kThreads)
    shared.plan[i] = plan_there[i];
  for (std::uint32_t i = threadIdx.x; i < kThreads * kUnitsOfStage; i += kThreads) shared.stages[i] = uint4{};
  const jpeg::CodeEntry* const codes = launch.codes + std::size_t{task.tables} * jpeg::kLookUpEntries;
  if (kShares)
    for (std::uint32_t i = threadIdx.x; i < (image.code_entries + 3) / 4; i += kThreads)
      reinterpret_cast<uint4*>(shared.codes)[i] = reinterpret_cast<const uint4*>(codes)[i];
  __syncthreads();

  const auto& plan = reinterpret_cast<const jpeg::ScanPlan&>(shared.plan);
  const Entries entries(plan, task.index);
  const jpeg::Range columns = jpeg::pieces_of_columns(image.window.columns);
  const std::uint32_t first = (blockIdx.x - launch.pieces.first[number]) * kThreads;
  const std::uint32_t count = image.window.rows.size() * columns.size();
  const auto piece_of = [&](std::uint32_t i) {
    return (image.window.rows.begin + i / columns.size()) * plan.pieces_of_row() + columns.begin +
           i % columns.size();
  };
  const std::uint32_t mine = first + threadIdx.x;
  std::uint32_t length = 0;
  if (mine < count) length = 1 + entries.position(piece_of(mine) + 1) - entries.position(piece_of(mine));
  const std::uint32_t taken = first + sorted_piece(shared, length);
  const bool active = taken < count;
  const std::uint32_t piece = piece_of(active ? taken : 0);
  const RingBytes bytes(task.frame, task.file.bytes, shared.rings + threadIdx.x * RingBytes::kStride);
  uint4* const coefficients = reinterpret_cast<uint4*>(launch.coefficients) + task.first_line * kUnitsOfLine;
  const jpeg::Scan<RingBytes> scan{bytes, image.data_offset, task.file.bytes, kShares ? shared.codes : codes};
  const jpeg::Fault fault = decode(shared, plan, scan, entries, piece, active, coefficients);
  if (fault != jpeg::Fault::none) atomicMax(launch.faults + number, static_cast<std::uint32_t>(fault));
  RingBytes::finish();
}

template <std::uint32_t kThreads>
void launch_pieces(const JpegLaunch& launch, cudaStream_t stream) {
  for (const auto kernel : {decode_pieces<kThreads, true>, decode_pieces<kThreads, false>}) {
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared<kThreads>));
    kernel<<<launch.pieces.count, kThreads, sizeof(Shared<kThreads>), stream>>>(launch);
  }
}

}  // namespace

void launch_jpeg_pieces(const JpegLaunch& launch, cudaStream_t stream) {
  if (launch.block_pieces == kFewJpegPieces)
    launch_pieces<kFewJpegPieces>(launch, stream);
  else
    launch_pieces<kJpegPieces>(launch, stream);
}

}  // namespace shard::gpu
