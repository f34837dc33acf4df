// Operations on each pixel, or on each value, for itself.
#pragma once

#include <cstdint>

#include "cuda/kernels/augment/block.cuh"

namespace shard::gpu {
namespace {

// change(r, g, b) of each pixel of 3 channels, as floats. Four pixels at a time, like each_pixel().
template <class Change>
__device__ void change_pixels(Block& block, const Change& change) {
  const auto changed = [&](std::uint32_t r, std::uint32_t g, std::uint32_t b) {
    return change(static_cast<float>(r), static_cast<float>(g), static_cast<float>(b));
  };
  const auto word_of = [](std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
    return a | b << 8U | c << 16U | d << 24U;
  };
  const std::uint32_t fours = in_words(block) ? block.pixels / 4 : 0;
  auto* const words = reinterpret_cast<std::uint32_t*>(block.now);
  for (std::uint32_t i = threadIdx.x; i < fours; i += kAugmentThreads) {
    const std::uint32_t a = words[3 * i];
    const std::uint32_t b = words[3 * i + 1];
    const std::uint32_t c = words[3 * i + 2];
    const Rgb p = changed(byte_of(a, 0), byte_of(a, 1), byte_of(a, 2));
    const Rgb q = changed(byte_of(a, 3), byte_of(b, 0), byte_of(b, 1));
    words[3 * i] = word_of(p.r, p.g, p.b, q.r);
    const Rgb r = changed(byte_of(b, 2), byte_of(b, 3), byte_of(c, 0));
    words[3 * i + 1] = word_of(q.g, q.b, r.r, r.g);
    const Rgb s = changed(byte_of(c, 1), byte_of(c, 2), byte_of(c, 3));
    words[3 * i + 2] = word_of(r.b, s.r, s.g, s.b);
  }
  for (std::uint32_t i = 4 * fours + threadIdx.x; i < block.pixels; i += kAugmentThreads) {
    std::uint8_t* const p = block.now + 3 * std::size_t{i};
    const Rgb out = changed(p[0], p[1], p[2]);
    p[0] = out.r;
    p[1] = out.g;
    p[2] = out.b;
  }
}

__device__ void change_colors(Block& block, const Step& instruction) {
  const float first = instruction.real[0];
  const float rest = instruction.real[1];
  switch (instruction.opcode) {
    case Opcode::hue:
      return change_pixels(block, [&](float r, float g, float b) { return hue_shifted(r, g, b, first); });
    case Opcode::grayscale:
      return change_pixels(block, [&](float r, float g, float b) {
        const auto gray = static_cast<std::uint8_t>(gray_of(r, g, b));
        return Rgb{gray, gray, gray};
      });
    default:
      return change_pixels(block, [&](float r, float g, float b) {
        const auto gray = static_cast<float>(gray_of(r, g, b));
        return Rgb{blend(r, gray, first, rest), blend(g, gray, first, rest), blend(b, gray, first, rest)};
      });
  }
}

__device__ void permute(Block& block, const Step& instruction) {
  for (std::uint32_t i = threadIdx.x; i < block.pixels; i += kAugmentThreads) {
    std::uint8_t* const p = block.now + std::size_t{i} * block.channels;
    std::uint8_t before[4];
    for (std::uint32_t c = 0; c < block.channels; ++c) before[c] = p[c];
    for (std::uint32_t c = 0; c < block.channels; ++c) p[c] = before[instruction.whole[c]];
  }
}

__device__ void drop_channels(Block& block, const Step& instruction) {
  for (std::uint32_t i = threadIdx.x; i < block.values; i += kAugmentThreads) {
    const std::uint32_t c = i % block.channels;
    if ((static_cast<std::uint32_t>(instruction.whole[c / 32]) >> (c % 32) & 1U) != 0)
      block.now[i] = cut_byte(fill_of(instruction.real, c));
  }
}

__device__ void erase(Block& block, const Step& instruction) {
  const std::int32_t* const whole = instruction.whole;
  const std::uint32_t across = static_cast<std::uint32_t>(whole[3]) * block.channels;
  const std::uint32_t row = static_cast<std::uint32_t>(block.width) * block.channels;
  const std::uint32_t values = static_cast<std::uint32_t>(whole[2]) * across;
  std::uint8_t* const begin = block.now + static_cast<std::size_t>(whole[0]) * row +
                              static_cast<std::uint32_t>(whole[1]) * block.channels;
  if (instruction.opcode == Opcode::erase) {
    for (std::uint32_t i = threadIdx.x; i < values; i += kAugmentThreads)
      begin[static_cast<std::size_t>(i / across) * row + i % across] =
          cut_byte(fill_of(instruction.real, i % across % block.channels));
    return;
  }
  for (std::uint32_t piece = threadIdx.x; piece < (values + 15) / 16; piece += kAugmentThreads) {
    std::uint32_t words[4];
    noise_words(static_cast<std::uint32_t>(whole[4]), static_cast<std::uint32_t>(whole[5]), piece, words);
    for (std::uint32_t k = 0; k < 16; ++k) {
      const std::uint32_t i = 16 * piece + k;
      if (i < values)
        begin[static_cast<std::size_t>(i / across) * row + i % across] =
            static_cast<std::uint8_t>(words[k / 4] >> (8 * (k % 4)));
    }
  }
}

__device__ void mix(Block& block, const Step& instruction) {
  const float weight = instruction.real[0];
  for (std::uint32_t i = threadIdx.x; i < block.values; i += kAugmentThreads) {
    switch (instruction.opcode) {
      case Opcode::keep:
        block.copy[i] = block.now[i];
        break;
      case Opcode::restore:
        block.now[i] = block.copy[i];
        break;
      case Opcode::mix_set:
        block.sum[i] = static_cast<float>(block.now[i]) * weight;
        break;
      case Opcode::mix_add:
        block.sum[i] = block.sum[i] + static_cast<float>(block.now[i]) * weight;
        break;
      default:
        block.now[i] = cut_byte(block.sum[i]);
        break;
    }
  }
}

}  // namespace
}  // namespace shard::gpu
