// Queues a transform with programs: samples -> pixels, the programs, pixels -> delivered samples.
//
//   scratch  [ records of the first pass ][ those of the second ][ begins ][ instructions ]
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

namespace shard {

namespace {

constexpr std::size_t kScratchAlign = 256;

std::size_t aligned(std::size_t bytes) { return (bytes + kScratchAlign - 1) / kScratchAlign * kScratchAlign; }

// The two passes around the programs.
struct Passes {
  TransformWork to_pixels;
  TransformWork to_sample;
  explicit Passes(const TransformWork& work) : to_pixels(work) {
    to_pixels.delivered = augment::pixels_of(work.delivered);
    to_pixels.normalize = false;
    to_pixels.instructions = {};
    to_pixels.begins = {};
    to_pixels.pairs = {};
    to_pixels.target = work.augment_scratch;
    to_sample = to_pixels;
    to_sample.sizes = {};
    to_sample.exact = false;
    to_pixels.target_is_read_soon = true;
    to_sample.stored = to_pixels.delivered;
    to_sample.delivered = work.delivered;
    to_sample.normalize = work.normalize;
    to_sample.target = work.target;
    to_sample.frame_bytes = {};
    to_sample.broken = nullptr;
    to_sample.unpacked = nullptr;
  }
};

bool mixes_in(const TransformWork& work) {
  return std::any_of(work.instructions.begin(), work.instructions.end(),
                     [](const Instruction& one) { return one.opcode == Opcode::keep; });
}

}  // namespace

std::size_t augmented_scratch_bytes(const TransformWork& work) noexcept {
  const Passes passes(work);
  return aligned(transform_scratch_bytes(passes.to_pixels)) +
         aligned(transform_scratch_bytes(passes.to_sample)) + aligned(work.begins.size_bytes()) +
         work.instructions.size_bytes();
}

void launch_augmented(const TransformWork& work, std::byte* pinned, std::byte* device, cudaStream_t stream,
                      const CopyItem& upload) {
  augment::check_programs(work);
  if (work.augment_scratch == nullptr && !work.sources.empty())
    throw Error(ErrorCode::invalid_argument, "transform: there is no memory for the pixels of programs");
  Passes passes(work);
  const std::size_t second = aligned(transform_scratch_bytes(passes.to_pixels));
  const std::size_t begins = second + aligned(transform_scratch_bytes(passes.to_sample));
  const std::size_t instructions = begins + aligned(work.begins.size_bytes());
  launch_transform(passes.to_pixels, pinned, device, stream, {false, upload});
  if (work.sources.empty()) return;

  const augment::ScratchShape shape(work.delivered, work.sources.size(), mixes_in(work));
  std::byte* const scratch = work.augment_scratch;
  if (!work.instructions.empty()) {
    std::memcpy(pinned + begins, work.begins.data(), work.begins.size_bytes());
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
  const SampleCrop whole{0, 0, work.delivered.width, work.delivered.height, false};
  const std::vector<SampleCrop> crops(work.sources.size(), whole);
  for (std::size_t i = 0; i < work.sources.size(); ++i) {
    const auto program = work.instructions.subspan(work.begins[i], work.begins[i + 1] - work.begins[i]);
    const auto swaps = std::count_if(program.begin(), program.end(),
                                     [](const Instruction& one) { return augment::swaps(one.opcode); });
    sources.push_back(scratch + (swaps % 2 == 0 ? 0 : shape.other) + i * shape.pitch);
  }
  passes.to_sample.sources = sources;
  passes.to_sample.crops = crops;
  launch_transform(passes.to_sample, pinned + second, device + second, stream);
}

}  // namespace shard
