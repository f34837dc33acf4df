// Programs of augmentation, drawn and executed, for tests of their parts.
#pragma once

#include <cstdint>
#include <vector>

#include "shard/loader/augment.hpp"
#include "support/transform/random_work.hpp"

namespace shard::testing {

using Pixels = std::vector<std::uint8_t>;

inline constexpr SampleSpec kColor{DType::u8, Layout::nhwc, 3, 37, 53};

// Noise in which each of the 256 values occurs.
inline Pixels noise(const SampleSpec& spec, std::uint64_t seed = 1) {
  Random random(seed);
  Pixels pixels(spec.elements());
  for (std::size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = i < 256 ? static_cast<std::uint8_t>(i) : static_cast<std::uint8_t>(random.between(0, 255));
  return pixels;
}

inline Pixels run(const SampleSpec& spec, const std::vector<Instruction>& program, Pixels pixels) {
  run_program(spec, program, pixels.data());
  return pixels;
}
inline Pixels run(const SampleSpec& spec, const Instruction& one, const Pixels& pixels) {
  return run(spec, std::vector<Instruction>{one}, pixels);
}

inline std::vector<Instruction> drawn(const SampleSpec& spec, const std::vector<Operation>& operations,
                                      std::uint64_t sample = 0, std::uint64_t seed = 0,
                                      std::uint64_t epoch = 0, std::uint32_t view = 0) {
  check_operations(spec, operations, view);
  std::vector<Instruction> program;
  draw_program(spec, operations, seed, epoch, sample, view, program);
  return program;
}

}  // namespace shard::testing
