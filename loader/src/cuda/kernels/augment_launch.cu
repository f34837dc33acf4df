// Queues a transform with programs: samples -> pixels, the programs, pixels -> delivered samples.
//
//   scratch  [ records of the first pass ][ those of the second ][ begins ][ own sizes ][ instructions ]
#include <algorithm>
#include <cstring>
#include <vector>

#include "cuda/kernels/augment.cuh"
#include "cuda/kernels/launch.cuh"
#include "cuda/kernels/transform.hpp"
#include "shard/error.hpp"
#include "transform/augment/host_augment.hpp"
#include "transform/augment/pixel_math.hpp"
#include "transform/augment/scratch.hpp"
#include "transform/check_work.hpp"

namespace shard {

namespace {

constexpr std::size_t kScratchAlign = 256;

std::size_t aligned(std::size_t bytes) { return (bytes + kScratchAlign - 1) / kScratchAlign * kScratchAlign; }

using augment::Passes;

bool mixes_in(const TransformWork& work) {
  return std::any_of(work.instructions.begin(), work.instructions.end(),
                     [](const Instruction& one) { return one.opcode == Opcode::keep; });
}

// Where the pixels of each sample are: one behind the other, or with patches as many as there are of it.
std::vector<gpu::OwnPixels> own_pixels(const TransformWork& work) {
  std::vector<gpu::OwnPixels> own;
  if (!augment::own_sizes(work)) return own;
  for (std::size_t i = 0; i < work.sources.size(); ++i) {
    const std::uint32_t first =
        work.patch != 0 ? work.tokens[i] - work.tokens[0] : static_cast<std::uint32_t>(i);
    own.push_back({resized_height(work, work.crops[i]), resized_width(work, work.crops[i]), first});
  }
  return own;
}

// How many samples of the delivered size, or patches, the pixels of a batch take.
std::uint64_t scratch_units(const TransformWork& work, const std::vector<gpu::OwnPixels>& own) {
  if (work.patch == 0) return work.sources.size();
  const gpu::OwnPixels& last = own.back();
  return last.first + std::uint64_t{last.height / work.patch} * (last.width / work.patch);
}

std::size_t own_bytes(const TransformWork& work) noexcept {
  return augment::own_sizes(work) ? aligned(work.sources.size() * sizeof(gpu::OwnPixels)) : 0;
}

}  // namespace

std::size_t augmented_scratch_bytes(const TransformWork& work) noexcept {
  const Passes passes(work);
  return aligned(transform_scratch_bytes(passes.to_pixels)) +
         aligned(transform_scratch_bytes(passes.to_sample)) + aligned(work.begins.size_bytes()) +
         own_bytes(work) + work.instructions.size_bytes();
}

void launch_augmented(const TransformWork& work, std::byte* pinned, std::byte* device, cudaStream_t stream,
                      const CopyItem& upload) {
  augment::check_programs(work);
  if (work.augment_scratch == nullptr && !work.sources.empty())
    throw Error(ErrorCode::invalid_argument, "transform: there is no memory for the pixels of programs");
  for (std::size_t i = 0; augment::own_sizes(work) && i < work.sources.size(); ++i) check_crop(work, i);
  Passes passes(work);
  passes.to_pixels.target = work.augment_scratch;
  const std::vector<gpu::OwnPixels> own = own_pixels(work);
  std::vector<SampleCrop> crops;
  std::vector<SampleSize> sizes;
  std::vector<std::uint32_t> units;
  for (std::size_t i = 0; i < own.size(); ++i) {
    crops.push_back(augment::own_crop(work.crops[i]));
    sizes.push_back({own[i].height, own[i].width});
    units.push_back(own[i].first);
  }
  if (!own.empty()) passes.to_pixels.crops = crops;
  const std::size_t second = aligned(transform_scratch_bytes(passes.to_pixels));
  const std::size_t begins = second + aligned(transform_scratch_bytes(passes.to_sample));
  const std::size_t places = begins + aligned(work.begins.size_bytes());
  const std::size_t instructions = places + own_bytes(work);
  launch_transform(passes.to_pixels, pinned, device, stream, {false, upload, units});
  if (work.sources.empty()) return;

  const augment::ScratchShape shape(work.delivered, scratch_units(work, own), mixes_in(work));
  std::byte* const scratch = work.augment_scratch;
  if (!work.instructions.empty()) {
    std::memcpy(pinned + begins, work.begins.data(), work.begins.size_bytes());
    if (!own.empty()) std::memcpy(pinned + places, own.data(), own.size() * sizeof(own[0]));
    std::memcpy(pinned + instructions, work.instructions.data(), work.instructions.size_bytes());
    launch_upload({device + begins, pinned + begins, instructions - begins + work.instructions.size_bytes()},
                  stream);
    gpu::AugmentLaunch launch{};
    launch.instructions = reinterpret_cast<const Instruction*>(device + instructions);
    launch.begins = reinterpret_cast<const std::uint32_t*>(device + begins);
    launch.samples = static_cast<std::uint32_t>(work.sources.size());
    launch.channels = work.delivered.channels;
    launch.height = work.delivered.height;
    launch.width = work.delivered.width;
    if (!own.empty()) launch.own = reinterpret_cast<const gpu::OwnPixels*>(device + places);
    launch.pixels = reinterpret_cast<std::uint8_t*>(scratch);
    launch.other = launch.pixels + shape.other;
    if (mixes_in(work)) {
      launch.copies = launch.pixels + shape.copies;
      launch.sums = reinterpret_cast<float*>(scratch + shape.sums);
    }
    gpu::launch_augment(launch, stream);
    gpu::check_launch("augmentation");
  }
  // Where each sample's program ends is known from its instructions.
  std::vector<const std::byte*> sources;
  crops.clear();
  for (std::size_t i = 0; i < work.sources.size(); ++i) {
    const auto program = work.instructions.subspan(work.begins[i], work.begins[i + 1] - work.begins[i]);
    const auto swaps = std::count_if(program.begin(), program.end(),
                                     [](const Instruction& one) { return augment::swaps(one.opcode); });
    const std::uint64_t first = own.empty() ? i : own[i].first;
    sources.push_back(scratch + (swaps % 2 == 0 ? 0 : shape.other) + first * shape.pitch);
    crops.push_back(own.empty() ? SampleCrop{0, 0, work.delivered.width, work.delivered.height, false}
                                : augment::whole_crop(sizes[i]));
  }
  passes.to_sample.sources = sources;
  passes.to_sample.crops = crops;
  passes.to_sample.sizes = sizes;
  passes.to_sample.tokens = work.tokens;
  launch_transform(passes.to_sample, pinned + second, device + second, stream);
}

}  // namespace shard
