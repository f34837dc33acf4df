// Random works of Stream::follow(), with the memory that they read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "shard/loader/geometry.hpp"
#include "shard/loader/targets.hpp"
#include "support/transform/random_program.hpp"

namespace shard::testing {

struct RandomTargets {
  SampleSpec stored;
  TargetWork plan;  // without arrays and memory
  std::vector<std::vector<std::byte>> samples;
  std::vector<const std::byte*> sources;
  std::vector<SampleCrop> crops;
  std::vector<SampleSize> sizes;  // of samples of any size
  std::vector<Instruction> steps;
  std::vector<std::uint32_t> begins{0};
  std::vector<MixPair> pairs;

  // Borrows from this object.
  TargetWork work(std::byte* target, std::byte* scratch) const {
    TargetWork result = plan;
    result.sources = sources;
    result.crops = crops;
    result.sizes = sizes;
    result.steps = steps;
    result.begins = begins;
    result.pairs = pairs;
    result.target = target;
    result.scratch = scratch;
    return result;
  }
  std::size_t target_bytes() const { return plan.row_bytes() * samples.size(); }
  std::string describe() const {
    return std::string(to_string(stored.dtype)) + " " + to_string(stored.layout).data() + " " +
           std::to_string(stored.channels) + "x" + std::to_string(stored.height) + "x" +
           std::to_string(stored.width) + " to " + std::to_string(plan.height) + "x" +
           std::to_string(plan.width) + (plan.bilinear ? " bilinear" : " nearest");
  }
};

// Finite values of the dtype.
inline std::vector<std::byte> random_values(Random& random, const SampleSpec& spec) {
  std::vector<std::byte> bytes(spec.size_bytes());
  for (std::byte& one : bytes) one = static_cast<std::byte>(random.between(0, 255));
  const std::size_t size = size_bytes(spec.dtype);
  if (spec.dtype == DType::f16 || spec.dtype == DType::bf16 || spec.dtype == DType::f32)
    for (std::size_t i = size - 1; i < bytes.size(); i += size) bytes[i] &= std::byte{0x3F};
  return bytes;
}

// `pixels`: the view. Geometric steps of up to three random operations.
inline void append_random_steps(Random& random, const SampleSpec& pixels, std::vector<Instruction>& steps) {
  std::vector<std::uint32_t> kinds;
  for (std::uint32_t kind = 0; kind < kOperationKinds; ++kind)
    if (const ops::Description& one = description_of(all_operations()[kind]); one.moves && !one.is_policy)
      kinds.push_back(kind);
  std::vector<Operation> operations;
  for (std::uint32_t i = random.between(0, 3); i > 0; --i)
    operations.push_back(random_operation(
        random, pixels, kinds[random.between(0, static_cast<std::uint32_t>(kinds.size()) - 1)]));
  std::vector<Instruction> program;
  draw_program(pixels, operations, random.between(0, 1000), 0, random.between(0, 1000), 0, program);
  append_geometric(program, steps);
}

// `any_size`: nearest, of samples that have sizes of their own and are placed in the view.
inline RandomTargets random_targets(Random& random, std::uint32_t largest, bool any_size = false) {
  constexpr DType kDTypes[] = {DType::u8, DType::u16, DType::f16, DType::bf16, DType::f32};
  RandomTargets result;
  SampleSpec& stored = result.stored;
  stored.dtype = kDTypes[random.between(0, 4)];
  stored.layout = random.coin() ? Layout::nchw : Layout::nhwc;
  stored.channels = random.coin() ? 1 : random.between(1, 5);
  stored.height = random.between(16, largest);
  stored.width = random.between(16, largest);
  TargetWork& plan = result.plan;
  plan.stored = stored;
  plan.bilinear = !any_size && random.coin();
  plan.layout = plan.bilinear ? stored.layout : random.coin() ? Layout::nchw : Layout::nhwc;
  plan.height = plan.bilinear ? stored.height : random.between(16, largest);
  plan.width = plan.bilinear ? stored.width : random.between(16, largest);
  plan.fill = static_cast<float>(random.between(0, 255));
  const SampleSpec pixels{DType::u8, Layout::nhwc, 3, plan.height, plan.width};
  const std::uint32_t rows = 2 * random.between(1, 3);
  for (std::uint32_t row = 0; row < rows; ++row) {
    if (any_size) {
      stored.height = random.between(1, largest);
      stored.width = random.between(1, largest);
      result.sizes.push_back({stored.height, stored.width});
    }
    result.samples.push_back(random_values(random, stored));
    const std::uint32_t width = random.between(1, stored.width);
    const std::uint32_t height = random.between(1, stored.height);
    if (!plan.bilinear)
      result.crops.push_back({random.between(0, stored.width - width),
                              random.between(0, stored.height - height), width, height, random.coin()});
    if (any_size) {
      SampleCrop& crop = result.crops.back();
      const auto offset = [&](std::uint32_t side) {
        return static_cast<std::int32_t>(random.between(0, 2 * side)) - static_cast<std::int32_t>(side);
      };
      crop.resized_height = random.between(1, 2 * plan.height);
      crop.resized_width = random.between(1, 2 * plan.width);
      crop.row = offset(plan.height);
      crop.column = offset(plan.width);
    }
    append_random_steps(random, pixels, result.steps);
    result.begins.push_back(static_cast<std::uint32_t>(result.steps.size()));
  }
  for (const auto& sample : result.samples) result.sources.push_back(sample.data());
  if (any_size) plan.stored.height = plan.stored.width = 0;
  if (!plan.bilinear && random.coin())
    for (std::uint32_t pair = 0; pair < rows / 2; ++pair) {
      const std::uint32_t left = random.between(0, plan.width);
      const std::uint32_t top = random.between(0, plan.height);
      result.pairs.push_back(
          {1, left, top, random.between(left, plan.width), random.between(top, plan.height)});
    }
  return result;
}

}  // namespace shard::testing
