// A block per image: its header, read by the first thread, and a look-up for each Huffman table, made by a
// warp each.
#include "cuda/kernels/jpeg/common.cuh"
#include "jpeg/header_scan.hpp"
#include "jpeg/index.hpp"

namespace shard::gpu {
namespace {

constexpr std::uint32_t kMostLookUps = 2 * jpeg::kMostTables;
constexpr std::uint32_t kHeaderThreads = kMostLookUps * kLanesOfWarp;
static_assert(kHeaderThreads == jpeg::kMostComponents * jpeg::kBlockValues);  // one per quantisation value

// Where the look-ups of an image lie, without gaps, and which look-up a component has.
struct LookUps {
  std::uint32_t at[kMostLookUps] = {};  // of the table in the file
  std::uint32_t count = 0;
  std::uint32_t dc_count = 0;
  std::uint8_t dc[jpeg::kMostComponents] = {};
  std::uint8_t ac[jpeg::kMostComponents] = {};
};

// Numbers the tables that components use.
__device__ void number_tables(const std::uint8_t* tables, const std::uint32_t* at, std::uint32_t components,
                              LookUps& look_ups, std::uint8_t* numbers) {
  for (std::uint32_t c = 0; c < components; ++c) {
    std::uint32_t same = 0;
    while (same < c && tables[same] != tables[c]) ++same;
    if (same == c) look_ups.at[look_ups.count] = at[tables[c]];
    numbers[c] = same < c ? numbers[same] : static_cast<std::uint8_t>(look_ups.count++);
  }
}

// Whether the header is that of the task, and the index that of the header.
__device__ bool fits(const jpeg::HeaderScan& scan, const JpegTask& task) {
  if (scan.fault != jpeg::HeaderFault::none) return false;
  if (scan.file.factors != task.file.factors || scan.file.size != task.file.size) return false;
  const std::uint32_t components = scan.file.components();
  if (components == 1 ? task.channels > 3 : components != task.channels && task.channels != 3) return false;
  if (task.makes_index != 0) return true;
  const jpeg::Layout layout = jpeg::geometry_of(scan.file);
  const auto* head = reinterpret_cast<const std::uint32_t*>(task.index);
  if (head[0] != jpeg::index_head(components) || head[1] != layout.pieces() || head[2] != scan.data_offset)
    return false;
  // The first piece begins with the data. Where others begin is found by decoding the ones before them.
  const auto* predictors = reinterpret_cast<const std::uint16_t*>(head + 4 + layout.pieces());
  std::uint32_t begin = head[4];
  for (std::uint32_t c = 0; c < components; ++c) begin |= predictors[c];
  return begin == 0;
}

// The whole warp. False: it is no prefix code, or not one of DC differences.
__device__ bool make_look_up(const DeviceBytes& bytes, std::uint32_t at, bool dc, jpeg::HuffmanTable& table,
                             std::uint16_t* entries, std::uint32_t& used) {
  const std::uint32_t lane = threadIdx.x % kLanesOfWarp;
  std::uint32_t count = lane < jpeg::kLongestCode ? bytes.byte(at + lane) : 0;
  if (lane < jpeg::kLongestCode) table.counts[lane + 1] = static_cast<std::uint8_t>(count);
  for (std::uint32_t step = 1; step < kLanesOfWarp; step *= 2)
    count += __shfl_xor_sync(kAllLanes, count, step);
  for (std::uint32_t i = lane; i < 256; i += kLanesOfWarp)
    table.symbols[i] = i < count ? static_cast<std::uint8_t>(bytes.byte(at + jpeg::kLongestCode + i)) : 0;
  for (std::uint32_t i = lane; i < jpeg::kLookUpEntries; i += kLanesOfWarp) entries[i] = 0;
  __syncwarp();
  bool good = true;
  if (lane == 0) {
    good = jpeg::is_prefix_code(table) && (!dc || jpeg::is_dc_table(table));
    if (good) used = jpeg::fill_look_up(table, entries);
  }
  return __all_sync(kAllLanes, good);
}

__device__ JpegPlane plane_of(const jpeg::Layout& layout, const JpegImage& image, std::uint32_t component) {
  const jpeg::Plane& plane = layout.planes[component];
  return {std::uint64_t{image.plan.first_line[component]} * jpeg::kBlockValues,
          image.window.columns.begin * plane.h * jpeg::kBlockSide,
          image.window.rows.begin * plane.v * jpeg::kBlockSide,
          image.window.columns.size() * plane.h * jpeg::kBlockSide,
          plane.width - 1,
          plane.height - 1,
          jpeg::upsampling_of(layout, component)};
}

__global__ void __launch_bounds__(kHeaderThreads) read_headers(JpegLaunch launch) {
  __shared__ std::uint16_t entries[kMostLookUps][jpeg::kLookUpEntries];
  alignas(8) __shared__ std::uint8_t scan_bytes[sizeof(jpeg::HeaderScan)];
  alignas(8) __shared__ std::uint8_t look_ups_bytes[sizeof(LookUps)];
  __shared__ std::uint32_t table_words[kMostLookUps][sizeof(jpeg::HuffmanTable) / 4 + 1];
  __shared__ std::uint32_t begins[kMostLookUps + 1];
  __shared__ bool usable;
  auto& scan = reinterpret_cast<jpeg::HeaderScan&>(scan_bytes);
  auto& look_ups = reinterpret_cast<LookUps&>(look_ups_bytes);
  const JpegTask& task = launch.tasks[blockIdx.x];
  JpegImage& image = launch.images[blockIdx.x];
  const DeviceBytes bytes(task.frame);
  if (threadIdx.x == 0) {
    scan = jpeg::HeaderScanner(bytes, task.file.bytes).read();
    usable = fits(scan, task);
    LookUps numbered;
    if (usable) {
      const std::uint32_t components = scan.file.components();
      number_tables(scan.dc, scan.dc_at, components, numbered, numbered.dc);
      numbered.dc_count = numbered.count;
      number_tables(scan.ac, scan.ac_at, components, numbered, numbered.ac);
    }
    look_ups = numbered;
  }
  __syncthreads();
  const std::uint32_t warp = threadIdx.x / kLanesOfWarp;
  if (warp < look_ups.count) {
    auto& table = reinterpret_cast<jpeg::HuffmanTable&>(table_words[warp]);
    std::uint32_t used = 0;
    if (!make_look_up(bytes, look_ups.at[warp], warp < look_ups.dc_count, table, entries[warp], used))
      usable = false;
    if (threadIdx.x % kLanesOfWarp == 0) begins[warp + 1] = used;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    launch.faults[blockIdx.x] = static_cast<std::uint32_t>(usable ? jpeg::Fault::none : jpeg::Fault::header);
    image.usable = usable ? 1 : 0;
    begins[0] = 0;
    for (std::uint32_t i = 0; i < look_ups.count; ++i) begins[i + 1] += begins[i];
  }
  if (!usable) return;
  __syncthreads();
  jpeg::CodeEntry* const target = launch.codes + std::size_t{task.tables} * jpeg::kLookUpEntries;
  if (warp < look_ups.count)
    for (std::uint32_t i = threadIdx.x % kLanesOfWarp; i < begins[warp + 1] - begins[warp]; i += kLanesOfWarp)
      target[begins[warp] + i] = jpeg::code_entry(entries[warp][i]);
  if (task.makes_index != 0) {
    jpeg::PackedSkip* const skips = launch.skips + std::size_t{task.makes_index - 1} * kSkipsOfFile;
    const std::uint32_t tables = min(look_ups.count - look_ups.dc_count, jpeg::kPackedTables);
    for (std::uint32_t i = threadIdx.x; i < tables * jpeg::kPackedSkips; i += kHeaderThreads)
      skips[i] =
          jpeg::packed_skip(entries[look_ups.dc_count + i / jpeg::kPackedSkips], i % jpeg::kPackedSkips);
  }
  const std::uint32_t component = threadIdx.x / jpeg::kBlockValues;
  const std::uint32_t k = threadIdx.x % jpeg::kBlockValues;
  if (component < scan.file.components())
    image.quantization[component][k] =
        jpeg::quantization_value(bytes, scan.quantization_at[scan.quantization[component]], k);
  if (threadIdx.x != 0) return;
  std::uint16_t dc[jpeg::kMostComponents] = {};
  std::uint16_t ac[jpeg::kMostComponents] = {};
  std::uint16_t skip[jpeg::kMostComponents] = {};
  for (std::uint32_t c = 0; c < scan.file.components(); ++c) {
    dc[c] = static_cast<std::uint16_t>(begins[look_ups.dc[c]]);
    ac[c] = static_cast<std::uint16_t>(begins[look_ups.ac[c]]);
    skip[c] = jpeg::packed_skips_of(look_ups.ac[c] - look_ups.dc_count);
  }
  const jpeg::Layout layout = jpeg::layout_of(scan);
  image.plan = jpeg::plan_scan(layout, task.window, dc, ac, task.makes_index != 0 ? skip : nullptr);
  image.window = task.window;
  image.data_offset = scan.data_offset;
  image.code_entries = begins[look_ups.count];
  image.dc_entries = begins[look_ups.dc_count];
  for (std::uint32_t c = 0; c < layout.components; ++c) image.planes[c] = plane_of(layout, image, c);
  image.layout = layout;
}

}  // namespace

void launch_jpeg_headers(const JpegLaunch& launch, cudaStream_t stream) {
  read_headers<<<launch.count, kHeaderThreads, 0, stream>>>(launch);
}

}  // namespace shard::gpu
