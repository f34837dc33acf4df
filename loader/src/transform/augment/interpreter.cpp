#include "transform/augment/interpreter.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "transform/augment/pixel_math.hpp"
#include "transform/float_transform.hpp"

namespace shard::augment {

namespace {

constexpr std::size_t kRoom = 64;  // values that vectors may read past the end

}  // namespace

Interpreter::Interpreter() : kernels_(augment_kernels()) {}

std::uint8_t* Interpreter::input(const SampleSpec& spec) {
  kernels_ = augment_kernels();  // a look-up; tests choose the instruction set
  channels_ = spec.channels;
  height_ = spec.height;
  width_ = spec.width;
  values_ = spec.elements();
  if (first_.size() < values_ + kRoom) first_.resize(values_ + kRoom);
  now_ = first_.data();
  other_ = nullptr;  // until it is needed
  reset_tables();
  return now_;
}

const std::uint8_t* Interpreter::run(std::span<const Instruction> program) {
  const DefaultFloatEnvironment environment;
  for (const Instruction& instruction : program) {
    if (swaps(instruction.opcode) && other_ == nullptr) {
      if (second_.size() < values_ + kRoom) second_.resize(values_ + kRoom);
      other_ = second_.data();
    }
    execute(instruction);
  }
  apply_tables();
  return now_;
}

void Interpreter::execute(const Instruction& instruction) {
  if (is_table(instruction.opcode)) return add_table(instruction);
  apply_tables();
  const std::size_t pixels = std::size_t{height_} * width_;
  const std::size_t row = std::size_t{width_} * channels_;
  switch (instruction.opcode) {
    case Opcode::saturation:
      return kernels_.saturation(now_, pixels, instruction.real[0], instruction.real[1]);
    case Opcode::hue:
      return kernels_.hue(now_, pixels, instruction.real[0]);
    case Opcode::grayscale:
      return kernels_.grayscale(now_, pixels);
    case Opcode::permute:
      for (std::size_t i = 0; i < values_; i += channels_) {
        std::uint8_t before[4];
        std::copy_n(now_ + i, channels_, before);
        for (std::uint32_t c = 0; c < channels_; ++c) now_[i + c] = before[instruction.whole[c]];
      }
      return;
    case Opcode::drop_channels:
      for (std::uint32_t c = 0; c < channels_; ++c) {
        if ((static_cast<std::uint32_t>(instruction.whole[c / 32]) >> (c % 32) & 1U) == 0) continue;
        const std::uint8_t value = cut_byte(fill_of(instruction.real.data(), c));
        for (std::size_t i = c; i < values_; i += channels_) now_[i] = value;
      }
      return;
    case Opcode::sharpness:
      return sharpen(instruction.real[0]);
    case Opcode::blur:
      return blur(instruction);
    case Opcode::affine:
    case Opcode::perspective:
      return move(instruction);
    case Opcode::flip_rows:
      for (std::uint32_t y = 0; y < height_; ++y)
        std::memcpy(other_ + y * row, now_ + (height_ - 1 - y) * row, row);
      return swap();
    case Opcode::quarter_turns:
      return turn(instruction.whole[0]);
    case Opcode::shift:
      return shift(instruction);
    case Opcode::erase:
    case Opcode::erase_noise:
      return erase(instruction);
    case Opcode::keep:
      copy_.assign(now_, now_ + values_);
      return;
    case Opcode::restore:
      std::copy_n(copy_.data(), values_, now_);
      return;
    case Opcode::mix_set:
    case Opcode::mix_add:
      sum_.resize(values_);
      return kernels_.weigh(now_, values_, instruction.real[0], instruction.opcode == Opcode::mix_add,
                            sum_.data());
    case Opcode::mix_end:
      return kernels_.cut(sum_.data(), values_, now_);
    default:
      return;
  }
}

void Interpreter::reset_tables() {
  pending_ = false;
  per_channel_ = false;
  for (Table& table : tables_)
    for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::uint8_t>(i);
}

// Tables that follow each other become one. Those that depend on the pixels see them after what came before.
void Interpreter::add_table(const Instruction& instruction) {
  const float* const real = instruction.real.data();
  const auto each = [&](auto&& entry) {
    for (Table& table : tables_)
      for (std::uint8_t& value : table) value = entry(value);
  };
  if (instruction.opcode >= Opcode::contrast) apply_tables();
  switch (instruction.opcode) {
    case Opcode::brightness:
      each([&](std::uint8_t v) { return brightness_of(v, real[0]); });
      break;
    case Opcode::posterize:
      each([&](std::uint8_t v) { return static_cast<std::uint8_t>(v & instruction.whole[0]); });
      break;
    case Opcode::solarize:
      each([&](std::uint8_t v) { return solarized(v, real[0]); });
      break;
    case Opcode::invert:
      each([](std::uint8_t v) { return static_cast<std::uint8_t>(255 - v); });
      break;
    case Opcode::contrast: {
      const float mean = gray_mean(gray_sum(), std::uint64_t{height_} * width_);
      each([&](std::uint8_t v) { return blend(v, mean, real[0], real[1]); });
      break;
    }
    default:  // autocontrast, equalize
      per_channel_ = true;
      for (std::uint32_t c = 0; c < channels_ && c < 4; ++c) {
        const std::array<std::uint32_t, 256> counts = histogram(c);
        std::uint32_t low = 0;
        std::uint32_t high = 255;
        while (low < 255 && counts[low] == 0) ++low;
        while (high > 0 && counts[high] == 0) --high;
        const std::uint32_t step = (height_ * width_ - counts[high]) / 255;
        std::uint32_t below = 0;
        for (std::uint32_t v = 0; v < 256; ++v) {
          tables_[c][v] = instruction.opcode == Opcode::equalize
                              ? equalized(v, below, step)
                              : stretched(static_cast<std::uint8_t>(v), low, high);
          below += counts[v];
        }
      }
  }
  pending_ = true;
}

void Interpreter::apply_tables() {
  if (!pending_) return;
  if (!per_channel_ || channels_ == 1) {
    kernels_.table(now_, values_, tables_[0].data());
  } else if (channels_ == 3) {
    for (std::size_t i = 0; i < values_; i += 3) {
      now_[i] = tables_[0][now_[i]];
      now_[i + 1] = tables_[1][now_[i + 1]];
      now_[i + 2] = tables_[2][now_[i + 2]];
    }
  } else {
    for (std::size_t i = 0; i < values_; i += channels_)
      for (std::uint32_t c = 0; c < channels_; ++c) now_[i + c] = tables_[c][now_[i + c]];
  }
  reset_tables();
}

std::uint64_t Interpreter::gray_sum() const {
  const std::size_t pixels = std::size_t{height_} * width_;
  if (channels_ == 3) return kernels_.gray_sum(now_, pixels);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < pixels; ++i) sum += now_[i];
  return sum;
}

std::array<std::uint32_t, 256> Interpreter::histogram(std::uint32_t channel) const {
  // Two, so that equal neighbours do not wait for each other.
  std::array<std::uint32_t, 256> even{};
  std::array<std::uint32_t, 256> odd{};
  std::size_t i = channel;
  for (; i + channels_ < values_; i += 2 * std::size_t{channels_}) {
    ++even[now_[i]];
    ++odd[now_[i + channels_]];
  }
  if (i < values_) ++even[now_[i]];
  for (std::size_t v = 0; v < 256; ++v) even[v] += odd[v];
  return even;
}

void Interpreter::sharpen(float rest) {
  std::memcpy(other_, now_, values_);
  const std::size_t row = std::size_t{width_} * channels_;
  if (height_ > 2 && width_ > 2)
    for (std::size_t y = 1; y + 1 < height_; ++y) {
      const std::uint8_t* const here = now_ + y * row + channels_;
      kernels_.sharpen(here - row, here, here + row, row - 2 * channels_, channels_, rest,
                       other_ + y * row + channels_);
    }
  swap();
}

// Rows of the kernel first, then its columns.
void Interpreter::blur(const Instruction& instruction) {
  const auto radius = static_cast<std::uint32_t>(instruction.whole[0]) / 2;
  const std::size_t row = std::size_t{width_} * channels_;
  const std::size_t margin = std::size_t{radius} * channels_;
  row_.resize(row + 2 * margin + kRoom);
  std::fill(row_.end() - kRoom, row_.end(), 0.0F);
  float* const sums = row_.data() + margin;
  for (std::uint32_t y = 0; y < height_; ++y) {
    for (std::uint32_t k = 0; k <= 2 * radius; ++k) {
      const std::int32_t from = mirrored(static_cast<std::int32_t>(y + k) - static_cast<std::int32_t>(radius),
                                         static_cast<std::int32_t>(height_));
      const float weight = instruction.real[k < radius ? radius - k : k - radius];
      kernels_.weigh(now_ + static_cast<std::size_t>(from) * row, row, weight, k > 0, sums);
    }
    for (std::uint32_t d = 1; d <= radius; ++d) {
      const auto width = static_cast<std::int32_t>(width_);
      const auto before = static_cast<std::size_t>(mirrored(-static_cast<std::int32_t>(d), width));
      const auto after = static_cast<std::size_t>(mirrored(width - 1 + static_cast<std::int32_t>(d), width));
      for (std::uint32_t c = 0; c < channels_; ++c) {
        *(sums - d * channels_ + c) = sums[before * channels_ + c];
        sums[row + (d - 1) * channels_ + c] = sums[after * channels_ + c];
      }
    }
    kernels_.blur_row(row_.data(), row, channels_, instruction.real.data(), radius, other_ + y * row);
  }
  swap();
}

void Interpreter::move(const Instruction& instruction) {
  const auto width = static_cast<std::int32_t>(width_);
  const auto height = static_cast<std::int32_t>(height_);
  const bool affine = instruction.opcode == Opcode::affine;
  const float* const fills = instruction.real.data() + (affine ? 6 : 8);
  row_.resize(2 * std::size_t{width_});
  float* const xs = row_.data();
  float* const ys = xs + width_;
  for (std::int32_t y = 0; y < height; ++y) {
    if (affine) {
      kernels_.affine_row(instruction.real.data(), y, width, height, xs, ys);
    } else {
      for (std::int32_t x = 0; x < width; ++x) {
        const Place place = perspective_place(instruction.real.data(), x, y, width, height);
        xs[x] = place.x;
        ys[x] = place.y;
      }
    }
    std::uint8_t* out = other_ + static_cast<std::size_t>(y) * width_ * channels_;
    if (instruction.whole[0] != 0)
      for (std::int32_t x = 0; x < width; ++x, out += channels_)
        sample_bilinear(now_, width, height, channels_, {xs[x], ys[x]}, instruction.whole[1] != 0, fills,
                        out);
    else
      for (std::int32_t x = 0; x < width; ++x, out += channels_)
        sample_nearest(now_, width, height, channels_, {xs[x], ys[x]}, fills, out);
  }
  swap();
}

// torch.rot90 by `turns`: counter-clockwise.
void Interpreter::turn(std::int32_t turns) {
  std::uint8_t* out = other_;
  for (std::uint32_t y = 0; y < height_; ++y)
    for (std::uint32_t x = 0; x < width_; ++x, out += channels_) {
      const std::uint32_t row = turns == 2 ? height_ - 1 - y : turns == 1 ? x : width_ - 1 - x;
      const std::uint32_t column = turns == 2 ? width_ - 1 - x : turns == 1 ? width_ - 1 - y : y;
      std::copy_n(now_ + (std::size_t{row} * width_ + column) * channels_, channels_, out);
    }
  swap();
}

void Interpreter::shift(const Instruction& instruction) {
  const auto width = static_cast<std::int32_t>(width_);
  const auto height = static_cast<std::int32_t>(height_);
  const bool reflect = instruction.whole[2] != 0;
  std::uint8_t* out = other_;
  for (std::int32_t y = 0; y < height; ++y)
    for (std::int32_t x = 0; x < width; ++x, out += channels_) {
      std::int32_t row = y - instruction.whole[0];
      std::int32_t column = x - instruction.whole[1];
      if (reflect) {
        row = mirrored(row, height);
        column = mirrored(column, width);
      }
      if (row < 0 || row >= height || column < 0 || column >= width)
        for (std::uint32_t c = 0; c < channels_; ++c) out[c] = cut_byte(fill_of(instruction.real.data(), c));
      else
        std::copy_n(
            now_ + (static_cast<std::size_t>(row) * width_ + static_cast<std::size_t>(column)) * channels_,
            channels_, out);
    }
  swap();
}

void Interpreter::erase(const Instruction& instruction) {
  const auto& whole = instruction.whole;
  const auto rows = static_cast<std::size_t>(whole[2]);
  const std::size_t values = static_cast<std::size_t>(whole[3]) * channels_;
  std::uint8_t* const begin =
      now_ + (static_cast<std::size_t>(whole[0]) * width_ + static_cast<std::size_t>(whole[1])) * channels_;
  std::size_t number = 0;
  std::uint32_t words[4] = {};
  for (std::size_t y = 0; y < rows; ++y) {
    std::uint8_t* const row = begin + y * width_ * channels_;
    for (std::size_t i = 0; i < values; ++i, ++number) {
      if (instruction.opcode == Opcode::erase) {
        row[i] = cut_byte(fill_of(instruction.real.data(), static_cast<std::uint32_t>(i % channels_)));
        continue;
      }
      if (number % 16 == 0)
        noise_words(static_cast<std::uint32_t>(whole[4]), static_cast<std::uint32_t>(whole[5]),
                    static_cast<std::uint32_t>(number / 16), words);
      row[i] = static_cast<std::uint8_t>(words[number % 16 / 4] >> (8 * (number % 4)));
    }
  }
}

}  // namespace shard::augment

namespace shard {

void run_program(const SampleSpec& spec, const std::vector<Instruction>& program, std::uint8_t* pixels) {
  static thread_local augment::Interpreter interpreter;
  const std::size_t size = spec.elements();
  std::memcpy(interpreter.input(spec), pixels, size);
  std::memcpy(pixels, interpreter.run(program), size);
}

}  // namespace shard
