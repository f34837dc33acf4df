// Programs of augmentation as a kernel: a block executes the program of its sample, instruction by instruction, with a
// barrier between them. Pixels stay in the L2 cache meanwhile. Same bits as the host's Interpreter, by the same functions.
//
// Built without contraction of floating-point expressions (see CMakeLists.txt).
#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/augment.cuh"
#include "transform/augment/pixel_math.hpp"

namespace shard::gpu {

namespace {

using namespace augment;

constexpr unsigned kAugmentThreads = 512;
constexpr unsigned kWarps = kAugmentThreads / 32;
constexpr std::uint32_t kMaxTables = 4;
// Values of a row of sums for the blur, in shared memory.
constexpr std::uint32_t kBlurValues = 6144;

// Instruction without std::array, whose members are not for devices.
struct Step {
  Opcode opcode;
  std::int32_t whole[7];
  float real[16];
};
static_assert(sizeof(Step) == sizeof(Instruction));

struct Shared {
  // Pending tables, of channels 0 to 3.
  std::uint8_t tables[kMaxTables][256];
  std::uint32_t counts[kMaxTables][256];
  std::uint32_t partial[kWarps];
  float blur[kBlurValues];
  Step instruction;
};

// What all threads of a block know.
struct Block {
  std::uint32_t channels;
  std::int32_t height;
  std::int32_t width;
  std::uint32_t pixels;
  std::uint32_t values;
  std::uint8_t* now;
  std::uint8_t* other;
  std::uint8_t* copy;
  float* sum;
  bool pending;
  bool per_channel;
  Shared* shared;
};

__device__ void swap(Block& block) {
  std::uint8_t* const now = block.now;
  block.now = block.other;
  block.other = now;
}

__device__ void reset_tables(Block& block) {
  for (unsigned i = threadIdx.x; i < kMaxTables * 256; i += kAugmentThreads)
    block.shared->tables[i / 256][i % 256] = static_cast<std::uint8_t>(i % 256);
  block.pending = false;
  block.per_channel = false;
  __syncthreads();
}

// All threads call; the tables are ready.
__device__ void apply_tables(Block& block) {
  if (!block.pending) return;
  const Shared& shared = *block.shared;
  std::uint8_t* const now = block.now;
  if (!block.per_channel || block.channels == 1) {
    const std::uint8_t* const table = shared.tables[0];
    // Four values at a time, between the first and the last aligned address.
    const auto address = reinterpret_cast<std::uintptr_t>(now);
    const std::uint32_t ahead = min(static_cast<std::uint32_t>((4 - address % 4) % 4), block.values);
    const std::uint32_t words = (block.values - ahead) / 4;
    if (threadIdx.x < ahead) now[threadIdx.x] = table[now[threadIdx.x]];
    auto* const quads = reinterpret_cast<std::uint32_t*>(now + ahead);
    for (std::uint32_t i = threadIdx.x; i < words; i += kAugmentThreads) {
      const std::uint32_t v = quads[i];
      quads[i] = table[v & 255U] | static_cast<std::uint32_t>(table[(v >> 8U) & 255U]) << 8U |
                 static_cast<std::uint32_t>(table[(v >> 16U) & 255U]) << 16U |
                 static_cast<std::uint32_t>(table[v >> 24U]) << 24U;
    }
    const std::uint32_t rest = ahead + 4 * words + threadIdx.x;
    if (rest < block.values && threadIdx.x < 4) now[rest] = table[now[rest]];
  } else {
    for (std::uint32_t i = threadIdx.x; i < block.values; i += kAugmentThreads)
      now[i] = shared.tables[i % block.channels][now[i]];
  }
  __syncthreads();
  reset_tables(block);
}

__device__ std::uint32_t sum_of_block(Block& block, std::uint32_t value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xFFFFFFFFU, value, offset);
  if (threadIdx.x % 32 == 0) block.shared->partial[threadIdx.x / 32] = value;
  __syncthreads();
  std::uint32_t sum = 0;
  for (const std::uint32_t part : block.shared->partial) sum += part;
  __syncthreads();
  return sum;
}

// The sum of gray values: below 2^32 for up to 4096 x 4096 pixels; larger samples by halves.
__device__ std::uint64_t gray_sum(Block& block) {
  std::uint64_t all = 0;
  constexpr std::uint32_t kPart = 1U << 24U;  // of 254 each
  for (std::uint32_t begin = 0; begin < block.pixels; begin += kPart) {
    const std::uint32_t end = block.pixels - begin < kPart ? block.pixels : begin + kPart;
    std::uint32_t part = 0;
    for (std::uint32_t i = begin + threadIdx.x; i < end; i += kAugmentThreads) {
      if (block.channels == 3) {
        const std::uint8_t* const p = block.now + 3 * std::size_t{i};
        part += static_cast<std::uint32_t>(
            gray_of(static_cast<float>(p[0]), static_cast<float>(p[1]), static_cast<float>(p[2])));
      } else {
        part += block.now[i];
      }
    }
    all += sum_of_block(block, part);
  }
  return all;
}

__device__ void count_values(Block& block) {
  Shared& shared = *block.shared;
  for (unsigned i = threadIdx.x; i < kMaxTables * 256; i += kAugmentThreads)
    shared.counts[i / 256][i % 256] = 0;
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < block.values; i += kAugmentThreads) {
    const std::uint32_t channel = i % block.channels;
    if (channel < kMaxTables) atomicAdd(&shared.counts[channel][block.now[i]], 1U);
  }
  __syncthreads();
}

// A thread per channel finds the bounds; tables have few entries.
__device__ void channel_tables(Block& block, Opcode opcode) {
  Shared& shared = *block.shared;
  count_values(block);
  const std::uint32_t channels = block.channels < kMaxTables ? block.channels : kMaxTables;
  if (threadIdx.x < channels) {
    const std::uint32_t* const counts = shared.counts[threadIdx.x];
    std::uint32_t low = 0;
    std::uint32_t high = 255;
    while (low < 255 && counts[low] == 0) ++low;
    while (high > 0 && counts[high] == 0) --high;
    const std::uint32_t step = (block.pixels - counts[high]) / 255;
    std::uint32_t below = 0;
    for (std::uint32_t v = 0; v < 256; ++v) {
      shared.tables[threadIdx.x][v] = opcode == Opcode::equalize
                                          ? equalized(v, below, step)
                                          : stretched(static_cast<std::uint8_t>(v), low, high);
      below += counts[v];
    }
  }
  block.per_channel = true;
  __syncthreads();
}

__device__ void add_table(Block& block, const Step& instruction) {
  Shared& shared = *block.shared;
  const float* const real = instruction.real;
  if (instruction.opcode >= Opcode::contrast) apply_tables(block);
  float mean = 0;
  if (instruction.opcode == Opcode::contrast) mean = gray_mean(gray_sum(block), block.pixels);
  if (instruction.opcode > Opcode::contrast) {
    channel_tables(block, instruction.opcode);
  } else {
    for (unsigned i = threadIdx.x; i < kMaxTables * 256; i += kAugmentThreads) {
      std::uint8_t& entry = shared.tables[i / 256][i % 256];
      const std::uint8_t v = entry;
      if (instruction.opcode == Opcode::brightness) entry = brightness_of(v, real[0]);
      if (instruction.opcode == Opcode::posterize)
        entry = static_cast<std::uint8_t>(v & instruction.whole[0]);
      if (instruction.opcode == Opcode::solarize) entry = solarized(v, real[0]);
      if (instruction.opcode == Opcode::invert) entry = static_cast<std::uint8_t>(255 - v);
      if (instruction.opcode == Opcode::contrast)
        entry = blend(static_cast<float>(v), mean, real[0], real[1]);
    }
    __syncthreads();
  }
  block.pending = true;
}

// Pixels of 3 channels, each for itself.
__device__ void change_colors(Block& block, const Step& instruction) {
  const float* const real = instruction.real;
  for (std::uint32_t i = threadIdx.x; i < block.pixels; i += kAugmentThreads) {
    std::uint8_t* const p = block.now + 3 * std::size_t{i};
    const auto r = static_cast<float>(p[0]);
    const auto g = static_cast<float>(p[1]);
    const auto b = static_cast<float>(p[2]);
    Rgb out{};
    if (instruction.opcode == Opcode::hue) {
      out = hue_shifted(r, g, b, real[0]);
    } else {
      const std::int32_t gray = gray_of(r, g, b);
      const auto g8 = static_cast<std::uint8_t>(gray);
      const auto gf = static_cast<float>(gray);
      out = instruction.opcode == Opcode::grayscale
                ? Rgb{g8, g8, g8}
                : Rgb{blend(r, gf, real[0], real[1]), blend(g, gf, real[0], real[1]),
                      blend(b, gf, real[0], real[1])};
    }
    p[0] = out.r;
    p[1] = out.g;
    p[2] = out.b;
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

__device__ void sharpen(Block& block, float rest) {
  const std::uint32_t row = static_cast<std::uint32_t>(block.width) * block.channels;
  const bool has_inner = block.height > 2 && block.width > 2;
  for (std::uint32_t i = threadIdx.x; i < block.values; i += kAugmentThreads) {
    const std::uint32_t y = i / row;
    const std::uint32_t x = i % row;
    const std::uint8_t* const p = block.now + i;
    const bool inner = has_inner && y > 0 && y + 1 < static_cast<std::uint32_t>(block.height) &&
                       x >= block.channels && x + block.channels < row;
    std::uint8_t value = *p;
    if (inner) {
      const std::ptrdiff_t c = block.channels;
      const std::ptrdiff_t r = row;
      const std::int32_t ring = p[-r - c] + p[-r] + p[-r + c] + p[-c] + p[c] + p[r - c] + p[r] + p[r + c];
      value = sharpened(value, ring, rest);
    }
    block.other[i] = value;
  }
}

// Rows of the kernel first, into shared memory; then its columns. Pieces of rows that fit.
// The sums of columns for `here` rows from y0 on, whole rows in words of four values; `sums` has `margin` values before each row and behind
// it, which become the mirrored columns. Rows of `row` values, a multiple of 4, that are aligned.
__device__ void blur_columns(const Block& block, const Step& instruction, std::uint32_t y0,
                             std::uint32_t here, std::uint32_t row, std::uint32_t margin, float* sums) {
  const std::uint32_t channels = block.channels;
  const std::int32_t radius = instruction.whole[0] / 2;
  const std::uint32_t pitch = row + 2 * margin;
  const std::uint32_t words = row / 4;
  for (std::uint32_t i = threadIdx.x; i < here * words; i += kAugmentThreads) {
    const std::uint32_t line = i / words;
    const std::uint32_t word = i % words;
    float sum[4] = {0, 0, 0, 0};
    for (std::int32_t k = -radius; k <= radius; ++k) {
      const std::int32_t y = mirrored(static_cast<std::int32_t>(y0 + line) + k, block.height);
      const std::uint32_t four =
          reinterpret_cast<const std::uint32_t*>(block.now)[static_cast<std::uint32_t>(y) * words + word];
      const float weight = instruction.real[k < 0 ? -k : k];
#pragma unroll
      for (std::uint32_t v = 0; v < 4; ++v)
        sum[v] = sum[v] + static_cast<float>((four >> 8U * v) & 255U) * weight;
    }
    float* const to = sums + line * pitch + margin + 4 * word;
#pragma unroll
    for (std::uint32_t v = 0; v < 4; ++v) to[v] = sum[v];
  }
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < here * 2 * margin; i += kAugmentThreads) {
    const std::uint32_t line = i / (2 * margin);
    const std::uint32_t at = i % (2 * margin);
    const std::uint32_t place = at < margin ? at : row + at;  // before the row, or behind it
    const auto outside = static_cast<std::int32_t>(place / channels) - radius;
    const auto x = static_cast<std::uint32_t>(mirrored(outside, block.width));
    sums[line * pitch + place] = sums[line * pitch + margin + x * channels + place % channels];
  }
}

// Rows of `wide` pixels: four pixels of a channel at a time, so that each sum is read once for all of them.
__device__ void blur_rows(const Block& block, const Step& instruction, const float* sums, std::uint32_t y0,
                          std::uint32_t here, std::uint32_t x0, std::uint32_t wide, std::uint32_t pitch) {
  const std::uint32_t channels = block.channels;
  const std::int32_t radius = instruction.whole[0] / 2;
  const std::uint32_t groups = (wide + 3) / 4 * channels;  // of a row
  const std::uint32_t row = static_cast<std::uint32_t>(block.width) * channels;
  for (std::uint32_t i = threadIdx.x; i < here * groups; i += kAugmentThreads) {
    const std::uint32_t line = i / groups;
    const std::uint32_t first = i % groups / channels * 4;
    const std::uint32_t channel = i % channels;
    const float* const from = sums + line * pitch + first * channels + channel;
    const std::uint32_t pixels = min(4U, wide - first);
    const std::uint32_t last =
        (pixels - 1 + 2 * static_cast<std::uint32_t>(radius)) * channels;  // that may be read
    const auto value = [&](std::uint32_t pixel) { return from[min(pixel * channels, last)]; };
    float a = value(0);
    float b = value(1);
    float c = value(2);
    float d = value(3);
    float sum[4] = {0, 0, 0, 0};
    for (std::int32_t k = -radius; k <= radius; ++k) {
      const float weight = instruction.real[k < 0 ? -k : k];
      sum[0] = sum[0] + a * weight;
      sum[1] = sum[1] + b * weight;
      sum[2] = sum[2] + c * weight;
      sum[3] = sum[3] + d * weight;
      a = b;
      b = c;
      c = d;
      d = value(static_cast<std::uint32_t>(k + radius) + 4);
    }
    std::uint8_t* const out =
        block.other + static_cast<std::size_t>(y0 + line) * row + (x0 + first) * channels + channel;
#pragma unroll
    for (std::uint32_t pixel = 0; pixel < 4; ++pixel)
      if (pixel < pixels) out[pixel * channels] = nearest_byte(sum[pixel]);
  }
}

__device__ void blur(Block& block, const Step& instruction) {
  float* const sums = block.shared->blur;
  const std::uint32_t channels = block.channels;
  const std::int32_t radius = instruction.whole[0] / 2;
  const std::uint32_t row = static_cast<std::uint32_t>(block.width) * channels;
  const std::uint32_t margin = static_cast<std::uint32_t>(radius) * channels;
  // Pixels of a piece, and rows at a time.
  const std::uint32_t most = kBlurValues / channels - 2 * static_cast<std::uint32_t>(radius);
  const std::uint32_t piece = min(static_cast<std::uint32_t>(block.width), most);
  const std::uint32_t pitch = piece * channels + 2 * margin;
  const std::uint32_t rows = kBlurValues / pitch;
  const bool in_words = piece == static_cast<std::uint32_t>(block.width) && row % 4 == 0 &&
                        reinterpret_cast<std::uintptr_t>(block.now) % 4 == 0;
  for (std::uint32_t y0 = 0; y0 < static_cast<std::uint32_t>(block.height); y0 += rows) {
    const std::uint32_t here = min(rows, static_cast<std::uint32_t>(block.height) - y0);
    if (in_words) {
      blur_columns(block, instruction, y0, here, row, margin, sums);
      __syncthreads();
      blur_rows(block, instruction, sums, y0, here, 0, piece, pitch);
      __syncthreads();
      continue;
    }
    for (std::uint32_t x0 = 0; x0 < static_cast<std::uint32_t>(block.width); x0 += piece) {
      const std::uint32_t wide = min(piece, static_cast<std::uint32_t>(block.width) - x0);
      const std::uint32_t values = wide * channels + 2 * margin;
      for (std::uint32_t i = threadIdx.x; i < here * values; i += kAugmentThreads) {
        const std::uint32_t line = i / values;
        const std::uint32_t at = i % values;
        const std::int32_t x = mirrored(static_cast<std::int32_t>(x0 + at / channels) - radius, block.width);
        const std::uint8_t* const column =
            block.now + static_cast<std::uint32_t>(x) * channels + at % channels;
        float sum = 0;
        for (std::int32_t k = -radius; k <= radius; ++k) {
          const std::int32_t y = mirrored(static_cast<std::int32_t>(y0 + line) + k, block.height);
          const float term = static_cast<float>(column[static_cast<std::size_t>(y) * row]) *
                             instruction.real[k < 0 ? -k : k];
          sum = k == -radius ? term : sum + term;
        }
        sums[line * pitch + at] = sum;
      }
      __syncthreads();
      blur_rows(block, instruction, sums, y0, here, x0, wide, pitch);
      __syncthreads();
    }
  }
}

__device__ void move(Block& block, const Step& instruction) {
  const bool affine = instruction.opcode == Opcode::affine;
  const float* const real = instruction.real;
  const float* const fills = real + (affine ? 6 : 8);
  for (std::uint32_t i = threadIdx.x; i < block.pixels; i += kAugmentThreads) {
    const auto y = static_cast<std::int32_t>(i / static_cast<std::uint32_t>(block.width));
    const auto x = static_cast<std::int32_t>(i % static_cast<std::uint32_t>(block.width));
    const Place place = affine ? affine_place(real, x, y, block.width, block.height)
                               : perspective_place(real, x, y, block.width, block.height);
    std::uint8_t* const out = block.other + std::size_t{i} * block.channels;
    if (instruction.whole[0] != 0)
      sample_bilinear(block.now, block.width, block.height, block.channels, place, instruction.whole[1] != 0,
                      fills, out);
    else
      sample_nearest(block.now, block.width, block.height, block.channels, place, fills, out);
  }
}

// flip_rows, quarter_turns and shift: whole pixels from somewhere else.
__device__ void rearrange(Block& block, const Step& instruction) {
  const std::int32_t* const whole = instruction.whole;
  const std::int32_t width = block.width;
  const std::int32_t height = block.height;
  for (std::uint32_t i = threadIdx.x; i < block.pixels; i += kAugmentThreads) {
    const auto y = static_cast<std::int32_t>(i / static_cast<std::uint32_t>(width));
    const auto x = static_cast<std::int32_t>(i % static_cast<std::uint32_t>(width));
    std::int32_t row = height - 1 - y;
    std::int32_t column = x;
    if (instruction.opcode == Opcode::quarter_turns) {
      row = whole[0] == 2 ? height - 1 - y : whole[0] == 1 ? x : width - 1 - x;
      column = whole[0] == 2 ? width - 1 - x : whole[0] == 1 ? width - 1 - y : y;
    } else if (instruction.opcode == Opcode::shift) {
      row = y - whole[0];
      column = x - whole[1];
      if (whole[2] != 0) {
        row = mirrored(row, height);
        column = mirrored(column, width);
      }
    }
    const bool inside = row >= 0 && row < height && column >= 0 && column < width;
    const std::uint8_t* const from = block.now + (static_cast<std::ptrdiff_t>(row) * width + column) *
                                                     static_cast<std::ptrdiff_t>(block.channels);
    std::uint8_t* const out = block.other + std::size_t{i} * block.channels;
    for (std::uint32_t c = 0; c < block.channels; ++c)
      out[c] = inside ? from[c] : cut_byte(fill_of(instruction.real, c));
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

__device__ void execute(Block& block, const Step& instruction) {
  if (is_table(instruction.opcode)) return add_table(block, instruction);
  apply_tables(block);
  switch (instruction.opcode) {
    case Opcode::saturation:
    case Opcode::hue:
    case Opcode::grayscale:
      change_colors(block, instruction);
      break;
    case Opcode::permute:
      permute(block, instruction);
      break;
    case Opcode::sharpness:
      sharpen(block, instruction.real[0]);
      break;
    case Opcode::blur:
      blur(block, instruction);
      break;
    case Opcode::affine:
    case Opcode::perspective:
      move(block, instruction);
      break;
    case Opcode::flip_rows:
    case Opcode::quarter_turns:
    case Opcode::shift:
      rearrange(block, instruction);
      break;
    case Opcode::erase:
    case Opcode::erase_noise:
      erase(block, instruction);
      break;
    default:
      mix(block, instruction);
      break;
  }
  if (swaps(instruction.opcode)) swap(block);
}

__global__ void __launch_bounds__(kAugmentThreads) run_programs(AugmentLaunch launch) {
  __shared__ Shared shared;
  for (std::uint32_t sample = blockIdx.x; sample < launch.samples; sample += gridDim.x) {
    Block block{};
    block.channels = launch.channels;
    block.height = static_cast<std::int32_t>(launch.height);
    block.width = static_cast<std::int32_t>(launch.width);
    block.pixels = launch.height * launch.width;
    block.values = block.pixels * launch.channels;
    const std::size_t at = std::size_t{sample} * block.values;
    block.now = launch.pixels + at;
    block.other = launch.other + at;
    block.copy = launch.copies == nullptr ? nullptr : launch.copies + at;
    block.sum = launch.sums == nullptr ? nullptr : launch.sums + at;
    block.shared = &shared;
    reset_tables(block);
    const std::uint32_t end = launch.begins[sample + 1];
    for (std::uint32_t i = launch.begins[sample]; i < end; ++i) {
      constexpr unsigned kWords = sizeof(Instruction) / 4;
      if (threadIdx.x < kWords)
        reinterpret_cast<std::uint32_t*>(&shared.instruction)[threadIdx.x] =
            reinterpret_cast<const std::uint32_t*>(launch.instructions + i)[threadIdx.x];
      __syncthreads();
      execute(block, shared.instruction);
      __syncthreads();
    }
    apply_tables(block);
    __syncthreads();
  }
}

}  // namespace

void launch_augment(const AugmentLaunch& launch, cudaStream_t stream) {
  run_programs<<<launch.samples, kAugmentThreads, 0, stream>>>(launch);
}

}  // namespace shard::gpu
