// Queues the parameters of a transform, and then the kernels that it needs.
#include "cuda/kernels/transform.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "cuda/kernels/launch.cuh"
#include "shard/error.hpp"
#include "transform/check_work.hpp"
#include "transform/value_map.hpp"

namespace shard {

namespace {

using gpu::Axes;
using gpu::Launch;
using gpu::SampleGeometry;
using gpu::SampleRecord;
using gpu::Tables;
using gpu::Values;

Axes axes_of(const SampleSpec& spec) {
  const bool planar = spec.layout == Layout::nchw;
  Axes axes{};
  axes.width = spec.width;
  axes.height = spec.height;
  axes.pixel = planar ? 1 : spec.channels;
  axes.row = std::uint64_t{spec.width} * axes.pixel;
  axes.plane = planar ? std::uint64_t{spec.width} * spec.height : 1;
  axes.sample = spec.elements();
  return axes;
}

Launch make_launch(const TransformWork& work, const ValueMap* map, const std::byte* scratch) {
  Launch launch{};
  launch.tables = reinterpret_cast<const std::uint32_t*>(scratch);
  launch.records = reinterpret_cast<const SampleRecord*>(scratch + sizeof(Tables));
  launch.samples = static_cast<std::uint32_t>(work.sources.size());
  launch.channels = work.stored.channels;
  launch.in = axes_of(work.stored);
  launch.out = axes_of(work.delivered);
  launch.planar_out = work.delivered.layout == Layout::nchw;
  launch.target = work.target;
  launch.reused = work.target_is_read_soon;
  if (map == nullptr) return launch;
  launch.values = work.delivered.dtype == DType::f32 ? Values::table32 : Values::table16;
  if (map->fused) launch.values = work.delivered.dtype == DType::f16 ? Values::line_f16 : Values::line_bf16;
  std::copy(map->scale.begin(), map->scale.end(), launch.scale);
  std::copy(map->bias.begin(), map->bias.end(), launch.bias);
  return launch;
}

gpu::Unpacking make_unpacking(const TransformWork& work, bool whole) {
  const packed::Shape shape{work.stored.channels, work.stored.height, work.stored.width};
  gpu::Unpacking unpacking{};
  unpacking.height = shape.height;
  unpacking.width = shape.width;
  unpacking.pairs = static_cast<std::uint32_t>(shape.row_pairs());
  unpacking.strips = static_cast<std::uint32_t>(shape.strips());
  unpacking.code_bytes = static_cast<std::uint32_t>(shape.code_bytes());
  unpacking.first_unit = static_cast<std::uint32_t>(shape.first_strip() / packed::kAlignment);
  unpacking.stored_units =
      (packed::kStoredBegin + shape.pixels_bytes() + packed::kAlignment - 1) / packed::kAlignment;
  unpacking.whole = whole;
  unpacking.broken = work.broken;
  return unpacking;
}

// The length in units of 16 bytes. 0, which no frame has, if the length is not possible.
std::uint32_t frame_units(std::uint64_t bytes) {
  const std::uint64_t units = bytes / packed::kAlignment;
  return bytes % packed::kAlignment == 0 && units <= std::numeric_limits<std::uint32_t>::max()
             ? static_cast<std::uint32_t>(units)
             : 0;
}

void check_frame(const TransformWork& work, std::size_t row) {
  if (reinterpret_cast<std::uintptr_t>(work.sources[row]) % packed::kAlignment == 0) return;
  throw Error(ErrorCode::invalid_argument,
              "transform: row " + std::to_string(row) + ": its frame is not 16-byte aligned");
}

// Behind the records: the mean and std of each channel, if there are too many for the parameters of a launch.
// In units of 16 bytes, as launch_upload() takes them.
std::size_t normalization_bytes(const TransformWork& work) noexcept {
  return work.stored.channels > 4 ? (2 * sizeof(float) * work.stored.channels + 15) / 16 * 16 : 0;
}

// Of each sample.
std::size_t geometry_bytes(const TransformWork& work) noexcept {
  return work.exact ? sizeof(SampleGeometry) : 0;
}

SampleGeometry geometry_of(const TransformWork& work, std::size_t row) {
  const SampleCrop& crop = work.crops[row];
  const SampleSize size = stored_size(work, row);
  SampleGeometry geometry{};
  geometry.stored_height = size.height;
  geometry.stored_width = size.width;
  geometry.resized_height = resized_height(work, crop);
  geometry.resized_width = resized_width(work, crop);
  geometry.row = crop.row;
  geometry.column = crop.column;
  geometry.first_token = work.patch != 0 ? work.tokens[row] : 0;
  return geometry;
}

// The widest of the samples.
std::uint32_t most_strips(const TransformWork& work) {
  std::uint32_t width = 1;
  for (std::size_t i = 0; i < work.sources.size(); ++i) width = std::max(width, stored_size(work, i).width);
  return static_cast<std::uint32_t>(packed::Shape{work.stored.channels, 1, width}.strips());
}

}  // namespace

std::size_t transform_scratch_bytes(const TransformWork& work) noexcept {
  if (!work.begins.empty()) return augmented_scratch_bytes(work);
  const std::size_t passes = work.frame_bytes.empty() ? 1 : 2;
  return sizeof(Tables) + work.sources.size() * (passes * sizeof(SampleRecord) + geometry_bytes(work)) +
         normalization_bytes(work);
}

namespace {

// Sets a record for each sample, and a second one for those that are unpacked to be resized. Returns how
// many there are.
std::size_t write_records(const TransformWork& work, bool unpacks_first, SampleRecord* records) {
  const std::size_t samples = work.sources.size();
  for (std::size_t i = 0; i < samples; ++i) {
    const SampleCrop& crop = work.crops[i];
    records[i] = {reinterpret_cast<const std::uint8_t*>(work.sources[i]),
                  crop.left,
                  crop.top,
                  crop.width,
                  crop.height,
                  crop.flip ? 1U : 0U,
                  work.frame_bytes.empty() ? 0 : frame_units(work.frame_bytes[i])};
  }
  if (!unpacks_first) return samples;
  const std::byte* const room = work.only_decodes() ? work.target : work.unpacked;
  if (room == nullptr)
    throw Error(ErrorCode::invalid_argument, "transform: there is no room to unpack samples to be resized");
  auto* place = reinterpret_cast<const std::uint8_t*>(room);
  for (std::size_t i = 0; i < samples; ++i) {
    records[samples + i] = records[i];
    records[samples + i].source = place;
    place += work.sizes.empty() ? work.stored.size_bytes()
                                : unpacked_room(work.stored.sized(work.sizes[i].height, work.sizes[i].width));
  }
  return 2 * samples;
}

void write_geometry(const TransformWork& work, std::span<const std::uint32_t> units,
                    SampleGeometry* geometry) {
  const std::size_t samples = work.sources.size();
  for (std::size_t i = 0; i < samples; ++i) {
    geometry[i] = geometry_of(work, i);
    if (!units.empty()) geometry[i].first_token = units[i];
  }
  for (std::size_t i = 0, few = 0, many = samples; i < samples; ++i)
    geometry[gpu::sees_many(work, work.crops[i]) ? --many : few++].ranked = static_cast<std::uint32_t>(i);
}

void write_normalization(const TransformWork& work, float* numbers) {
  for (std::size_t c = 0; c < work.stored.channels; ++c) {
    numbers[c] = mean_of(work.normalization, c);
    numbers[work.stored.channels + c] = std_of(work.normalization, c);
  }
}

// Packed samples of which views are resized: unpacks them, and then makes the views, if there are any.
void launch_unpack_and_resize(const TransformWork& work, Launch launch, const gpu::Unpacking& unpacking,
                              cudaStream_t stream) {
  TransformWork unpacked = work;
  unpacked.stored.layout = Layout::nhwc;
  Launch first = launch;
  if (work.sizes.empty()) first.geometry = nullptr;  // all have one size
  first.values = Values::same;
  first.out = axes_of(unpacked.stored);
  first.planar_out = false;
  first.target = work.unpacked;
  gpu::launch_unpack(first, unpacking, stream);
  gpu::check_launch("unpacking");
  if (work.only_decodes()) return;
  launch.records += work.sources.size();
  launch.in = first.out;
  if (work.exact)
    gpu::launch_exact(unpacked, launch, stream);
  else
    gpu::launch_resize(unpacked, launch, stream);
}

void launch_views(const TransformWork& work, const Launch& launch, bool resized, cudaStream_t stream) {
  const bool of_bytes = work.stored.dtype == DType::u8 && !is_wide(work.stored);
  gpu::Unpacking unpacking = make_unpacking(work, resized);
  if (!work.sizes.empty()) unpacking.strips = most_strips(work);
  if (!work.frame_bytes.empty() && resized) {
    launch_unpack_and_resize(work, launch, unpacking, stream);
  } else if (!work.frame_bytes.empty()) {
    gpu::launch_unpack(launch, unpacking, stream);
  } else if (work.exact && of_bytes) {
    gpu::launch_exact(work, launch, stream);
  } else if (work.exact) {
    gpu::launch_exact_floats(work, launch, stream);
  } else if (!of_bytes && (resized || converts_floats(work))) {
    gpu::launch_floats(work, launch, resized, stream);
  } else if (resized) {
    gpu::launch_resize(work, launch, stream);
  } else {
    gpu::launch_copy(work, launch, stream);
  }
  gpu::check_launch("the transform");
}

}  // namespace

bool launch_transform(const TransformWork& work, std::byte* pinned, std::byte* device, cudaStream_t stream,
                      const TransformLaunch& with) {
  check_work(work);
  if (!work.begins.empty()) {
    launch_augmented(work, pinned, device, stream, with.upload);
    return false;
  }
  const std::size_t samples = work.sources.size();
  if (samples == 0) {
    launch_upload(with.upload, stream);
    return with.tables_there;
  }
  const bool packed = !work.frame_bytes.empty();
  bool resized = work.exact;
  for (std::size_t i = 0; i < samples; ++i) {
    check_crop(work, i);
    if (packed) check_frame(work, i);
    resized = resized || resizes(work, work.crops[i]);
  }
  const std::size_t uploaded =
      write_records(work, packed && resized, reinterpret_cast<SampleRecord*>(pinned + sizeof(Tables)));
  const bool of_bytes = work.stored.dtype == DType::u8 && !is_wide(work.stored);
  const ValueMap* const map =
      of_bytes && work.delivered.dtype != DType::u8 ? &cached_value_map(work) : nullptr;
  const bool tables =
      map != nullptr && !(with.tables_there && std::memcmp(pinned, map->bits.data(), sizeof(Tables)) == 0);
  if (tables) std::memcpy(pinned, map->bits.data(), sizeof(Tables));
  const std::size_t begin = tables ? 0 : sizeof(Tables);
  const std::size_t geometry_at = sizeof(Tables) + uploaded * sizeof(SampleRecord);
  if (work.exact) write_geometry(work, with.units, reinterpret_cast<SampleGeometry*>(pinned + geometry_at));
  const std::size_t normalization_at = geometry_at + (work.exact ? samples * sizeof(SampleGeometry) : 0);
  const std::size_t numbers = normalization_bytes(work);
  if (numbers != 0) write_normalization(work, reinterpret_cast<float*>(pinned + normalization_at));
  const std::size_t end = normalization_at + numbers;
  launch_upload({device + begin, pinned + begin, end - begin}, stream, with.upload);
  Launch launch = make_launch(work, map, device);
  launch.own_sizes = !with.units.empty();
  launch.normalization = reinterpret_cast<const float*>(device + normalization_at);
  if (work.exact) launch.geometry = reinterpret_cast<const SampleGeometry*>(device + geometry_at);
  launch_views(work, launch, resized, stream);
  return with.tables_there || (map != nullptr && !(packed && resized && work.only_decodes()));
}

}  // namespace shard
