// Pixels of targets (targets.hpp). Same bits as the host's follow_rows(). Built without contraction of
// floating-point expressions (see CMakeLists.txt).
//
//   scratch  [ records ][ pairs of cutmix ][ steps ]
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "cuda/kernels/elements.cuh"
#include "cuda/kernels/launch.cuh"
#include "cuda/kernels/targets.hpp"
#include "cuda/kernels/transform.hpp"
#include "transform/targets/host_targets.hpp"
#include "transform/targets/target_math.hpp"

namespace shard {

namespace {

using targets::CropMap;
using targets::Origin;
using targets::Strides;

struct TargetRecord {
  const std::byte* source;
  Strides in;
  CropMap crop;
  std::uint32_t first_step;
  std::uint32_t steps;
  std::uint32_t unused[3];
};
static_assert(sizeof(TargetRecord) % 16 == 0);

struct TargetLaunch {
  const TargetRecord* records;
  const MixPair* pairs;  // null: none
  const Instruction* steps;
  std::uint32_t samples;
  std::uint32_t channels;
  std::int32_t width;
  std::int32_t height;
  Strides out;
  std::uint64_t elements;  // of a delivered sample
  std::uint32_t fill_bits;
  float fill;
  std::byte* target;
  std::byte* scratch;
};

// Which source the pixel (x, y) of a row comes from.
__device__ std::uint32_t row_of_pixel(const TargetLaunch& launch, std::uint32_t sample, std::int32_t x,
                                      std::int32_t y) {
  if (launch.pairs == nullptr) return sample;
  const MixPair pair = launch.pairs[sample / 2];
  return augment::in_box(pair, static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y)) ? sample ^ 1U
                                                                                             : sample;
}

// Channel `channel` of pixel (x, y).
template <class Element>
__device__ Element nearest_value(const TargetLaunch& launch, const TargetRecord& record,
                                 std::uint32_t channel, std::int32_t x, std::int32_t y) {
  Origin at{x, y, true};
  for (std::uint32_t k = record.steps; k-- > 0 && at.inside;)
    at = targets::step_origin(launch.steps[record.first_step + k], at.x, at.y, launch.width, launch.height);
  if (!at.inside) return static_cast<Element>(launch.fill_bits);
  const std::int32_t column = targets::column_origin(record.crop, at.x, launch.width);
  const std::int32_t row = targets::row_origin(record.crop, at.y);
  if (column == targets::kOutside || row == targets::kOutside) return static_cast<Element>(launch.fill_bits);
  return __ldcs(reinterpret_cast<const Element*>(record.source) +
                static_cast<std::uint64_t>(row) * record.in.row +
                static_cast<std::uint64_t>(column) * record.in.column + channel * record.in.channel);
}

// Of an element of a row of the target: its channel, row and column.
struct ElementPlace {
  std::uint32_t channel;
  std::int32_t x;
  std::int32_t y;
};
__device__ ElementPlace place_of_element(const TargetLaunch& launch, std::uint32_t element) {
  const auto width = static_cast<std::uint32_t>(launch.width);
  if (launch.out.column == 1) {  // planes
    const std::uint32_t row = element / width;
    const std::uint32_t channel = row / static_cast<std::uint32_t>(launch.height);
    return {channel, static_cast<std::int32_t>(element - row * width),
            static_cast<std::int32_t>(row - channel * static_cast<std::uint32_t>(launch.height))};
  }
  const std::uint32_t pixel = element / launch.channels;
  const std::uint32_t row = pixel / width;
  return {element - pixel * launch.channels, static_cast<std::int32_t>(pixel - row * width),
          static_cast<std::int32_t>(row)};
}

// One thread makes kValues elements, which are in one row of one plane and are stored as one word.
template <class Element, unsigned kValues>
__global__ void __launch_bounds__(gpu::kThreads) follow_nearest(const __grid_constant__ TargetLaunch launch) {
  const auto units = static_cast<std::uint32_t>(launch.elements / kValues);
  for (std::uint32_t sample = blockIdx.y; sample < launch.samples; sample += gridDim.y) {
    auto* const row = reinterpret_cast<Element*>(launch.target) + sample * launch.elements;
    for (std::uint32_t unit = blockIdx.x * gpu::kThreads + threadIdx.x; unit < units;
         unit += gridDim.x * gpu::kThreads) {
      const ElementPlace place = place_of_element(launch, unit * kValues);
      std::uint32_t word = 0;
      for (unsigned i = 0; i < kValues; ++i) {
        const std::int32_t x = place.x + static_cast<std::int32_t>(i);
        const TargetRecord& record = launch.records[row_of_pixel(launch, sample, x, place.y)];
        const Element value = nearest_value<Element>(launch, record, place.channel, x, place.y);
        word |= static_cast<std::uint32_t>(value) << (i * 8 * sizeof(Element) % 32);
      }
      if constexpr (kValues == 1)
        __stcs(row + unit, static_cast<Element>(word));
      else
        __stcs(reinterpret_cast<std::uint32_t*>(row) + unit, word);
    }
  }
}

// Step `number` of each row that has so many; rows without steps are copied by the first. The last step of a
// row writes the target, the one before it the scratch, and so on.
template <class Type>
__global__ void __launch_bounds__(gpu::kThreads)
    follow_bilinear(const __grid_constant__ TargetLaunch launch, std::uint32_t number) {
  using Stored = typename Type::Stored;
  for (std::uint32_t sample = blockIdx.y; sample < launch.samples; sample += gridDim.y) {
    const TargetRecord& record = launch.records[sample];
    if (number >= record.steps && !(number == 0 && record.steps == 0)) continue;
    const auto buffer = [&](std::uint32_t steps_left) {
      return reinterpret_cast<Stored*>(steps_left % 2 == 0 ? launch.target : launch.scratch) +
             sample * launch.elements;
    };
    const Stored* const in =
        number == 0 ? reinterpret_cast<const Stored*>(record.source) : buffer(record.steps - number);
    Stored* const out = record.steps == 0 ? buffer(0) : buffer(record.steps - number - 1);
    for (std::uint64_t element = blockIdx.x * std::uint64_t{gpu::kThreads} + threadIdx.x;
         element < launch.elements; element += std::uint64_t{gridDim.x} * gpu::kThreads) {
      if (record.steps == 0) {
        out[element] = in[element];
        continue;
      }
      const Instruction& step = launch.steps[record.first_step + number];
      const ElementPlace at = place_of_element(launch, static_cast<std::uint32_t>(element));
      const Stored* const plane = in + at.channel * launch.out.channel;
      if (targets::is_interpolated(step.opcode)) {
        const auto load = [&](std::uint64_t e) { return Type::load(plane[e]); };
        out[element] = Type::store(
            targets::bilinear_at(load, targets::place_of(step, at.x, at.y, launch.width, launch.height),
                                 launch.width, launch.height, launch.out, launch.fill));
      } else {
        const Origin from = targets::exact_origin(step, at.x, at.y, launch.width, launch.height);
        out[element] = from.inside ? plane[static_cast<std::uint64_t>(from.y) * launch.out.row +
                                           static_cast<std::uint64_t>(from.x) * launch.out.column]
                                   : Type::store(launch.fill);
      }
    }
  }
}

std::size_t padded(std::size_t bytes) { return (bytes + 15) / 16 * 16; }

template <class Element>
void launch_nearest(const TargetLaunch& launch, cudaStream_t stream) {
  constexpr unsigned kWord = 4 / sizeof(Element);
  const bool words = launch.out.column == 1 && launch.width % kWord == 0 &&
                     reinterpret_cast<std::uintptr_t>(launch.target) % 4 == 0;
  const dim3 grid = gpu::grid_of(launch.elements / (words ? kWord : 1), launch.samples);
  if (words)
    follow_nearest<Element, kWord><<<grid, gpu::kThreads, 0, stream>>>(launch);
  else
    follow_nearest<Element, 1><<<grid, gpu::kThreads, 0, stream>>>(launch);
}

template <class Type>
void launch_bilinear(const TargetLaunch& launch, std::uint32_t most_steps, cudaStream_t stream) {
  const dim3 grid = gpu::grid_of(launch.elements, launch.samples);
  for (std::uint32_t number = 0; number < std::max(1U, most_steps); ++number)
    follow_bilinear<Type><<<grid, gpu::kThreads, 0, stream>>>(launch, number);
}

void launch_by_dtype(const TargetWork& work, const TargetLaunch& launch, std::uint32_t most_steps,
                     cudaStream_t stream) {
  const DType dtype = work.stored.dtype;
  if (!work.bilinear) {
    if (dtype == DType::u8) return launch_nearest<std::uint8_t>(launch, stream);
    if (dtype == DType::f32) return launch_nearest<std::uint32_t>(launch, stream);
    return launch_nearest<std::uint16_t>(launch, stream);
  }
  gpu::with_type(dtype, [&](auto type) { launch_bilinear<decltype(type)>(launch, most_steps, stream); });
}

}  // namespace

std::size_t targets_scratch_bytes(const TargetWork& work) noexcept {
  return sizeof(TargetRecord) * work.sources.size() + padded(work.pairs.size_bytes()) +
         padded(work.steps.size_bytes());
}

void launch_targets(const TargetWork& work, std::byte* pinned, std::byte* device, cudaStream_t stream) {
  targets::check_targets(work);
  const std::size_t rows = work.sources.size();
  if (rows == 0) return;
  const std::size_t pairs = sizeof(TargetRecord) * rows;
  const std::size_t steps = pairs + padded(work.pairs.size_bytes());
  std::uint32_t most_steps = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    TargetRecord record{};
    record.source = work.sources[row];
    if (!work.bilinear) {
      const SampleSpec stored = targets::stored_spec(work, row);
      record.in =
          targets::strides_of(stored.layout == Layout::nchw, stored.channels, stored.height, stored.width);
      record.crop = targets::crop_map(work, row);
    }
    record.first_step = work.begins[row];
    record.steps = work.begins[row + 1] - work.begins[row];
    most_steps = std::max(most_steps, record.steps);
    std::memcpy(pinned + row * sizeof(record), &record, sizeof(record));
  }
  if (!work.pairs.empty()) std::memcpy(pinned + pairs, work.pairs.data(), work.pairs.size_bytes());
  if (!work.steps.empty()) std::memcpy(pinned + steps, work.steps.data(), work.steps.size_bytes());
  launch_upload({device, pinned, targets_scratch_bytes(work)}, stream);

  TargetLaunch launch{};
  launch.records = reinterpret_cast<const TargetRecord*>(device);
  launch.pairs = work.pairs.empty() ? nullptr : reinterpret_cast<const MixPair*>(device + pairs);
  launch.steps = reinterpret_cast<const Instruction*>(device + steps);
  launch.samples = static_cast<std::uint32_t>(rows);
  launch.channels = work.stored.channels;
  launch.width = static_cast<std::int32_t>(work.width);
  launch.height = static_cast<std::int32_t>(work.height);
  launch.out =
      targets::strides_of(work.layout == Layout::nchw, work.stored.channels, work.height, work.width);
  launch.elements = work.row_bytes() / size_bytes(work.stored.dtype);
  launch.fill_bits = targets::fill_bits(work);
  launch.fill = work.fill;
  launch.target = work.target;
  launch.scratch = work.scratch;
  launch_by_dtype(work, launch, most_steps, stream);
  gpu::check_launch("targets");
}

}  // namespace shard
