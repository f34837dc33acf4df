// TransformWorks of random shapes, types, layouts and crops, with the samples they read.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "shard/codec.hpp"
#include "shard/loader/transform.hpp"

namespace shard::testing {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  // In [low, high]. std::uniform_int_distribution differs between standard libraries.
  std::uint32_t between(std::uint32_t low, std::uint32_t high) {
    return low + static_cast<std::uint32_t>(engine_() % (std::uint64_t{high} - low + 1));
  }
  bool coin() { return (engine_() & 1U) != 0; }
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[between(0, static_cast<std::uint32_t>(values.size()) - 1)];
  }
  void fill(std::vector<std::byte>& bytes) {
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(engine_());
  }

 private:
  std::mt19937_64 engine_;
};

struct RandomWork {
  SampleSpec stored;
  SampleSpec delivered;
  Normalization normalization;
  std::vector<std::vector<std::byte>> samples;
  std::vector<const std::byte*> sources;
  std::vector<SampleCrop> crops;
  bool normalize = false;
  std::vector<std::uint64_t> frame_bytes;  // of codec packed; else empty
  std::vector<SampleSize> sizes{};         // of samples of any size, which are resized exactly
  ResizeFilter filter = ResizeFilter::bilinear;
  std::uint8_t fill = 0;

  // To `target`, of delivered.size_bytes() * samples.size().
  TransformWork work(std::byte* target) const {
    TransformWork result{stored, delivered, normalization, normalize, sources, crops, target, frame_bytes};
    result.sizes = sizes;
    result.exact = !sizes.empty();
    result.filter = filter;
    result.fill.fill(fill);
    result.fill_value = fill;
    return result;
  }
  std::size_t target_bytes() const { return delivered.size_bytes() * samples.size(); }
  std::string describe() const {
    auto text = [](const SampleSpec& spec) {
      return std::string(to_string(spec.dtype)) + " " + std::string(to_string(spec.layout)) + " " +
             std::to_string(spec.channels) + "x" + std::to_string(spec.height) + "x" +
             std::to_string(spec.width);
    };
    std::string all = text(stored) + " -> " + text(delivered);
    for (const SampleCrop& crop : crops)
      all += ", box " + std::to_string(crop.height) + "x" + std::to_string(crop.width) + " at " +
             std::to_string(crop.top) + "," + std::to_string(crop.left) + (crop.flip ? " flipped" : "");
    return all;
  }
};

// Values of -4 to 4 in a sample of floats; `special`: NaN, infinities, zeros of both signs, subnormal,
// smallest and largest values among them.
inline void fill_floats(Random& random, DType dtype, bool special, std::vector<std::byte>& sample) {
  const std::size_t size = size_bytes(dtype);
  for (std::size_t at = 0; at < sample.size(); at += size) {
    const auto raw = static_cast<std::int32_t>(random.between(0, 1U << 24U)) - (1 << 23);
    const float value = static_cast<float>(raw) * 0x1p-21F;
    std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    if (dtype == DType::f16) bits = f32_to_f16(value);
    if (dtype == DType::bf16) bits = f32_to_bf16(value);
    if (special && random.between(0, 15) == 0) {
      // Exponents of zero and of all ones, with any sign and any of a few fractions.
      const std::uint32_t sign = dtype == DType::f32 ? 0x80000000U : 0x8000U;
      const std::uint32_t fraction_bits = dtype == DType::f16 ? 10 : dtype == DType::bf16 ? 7 : 23;
      const std::uint32_t top = (sign - 1) >> fraction_bits;
      const std::uint32_t exponent = random.one_of({0U, 0U, 1U, top - 1, top});
      const std::uint32_t most = (1U << fraction_bits) - 1;
      const std::uint32_t fraction = random.one_of({0U, 0U, 1U, most, most / 2, random.between(0, most)});
      bits = (random.coin() ? sign : 0U) | exponent << fraction_bits | fraction;
    }
    std::memcpy(&sample[at], &bits, size);
  }
}

inline SampleCrop random_crop(Random& random, const SampleSpec& stored, std::uint32_t height,
                              std::uint32_t width) {
  return {random.between(0, stored.width - width), random.between(0, stored.height - height), width, height,
          random.coin()};
}

// Samples of up to `largest` rows and columns.
inline RandomWork random_work(Random& random, std::uint32_t largest) {
  RandomWork work;
  SampleSpec& stored = work.stored;
  stored.dtype = random.one_of({DType::u8, DType::u8, DType::u8, DType::f16, DType::bf16, DType::f32});
  stored.layout = random.one_of({Layout::nchw, Layout::nhwc});
  stored.channels = random.one_of({1U, 2U, 3U, 3U, 3U, 4U});
  stored.height = random.between(1, largest);
  stored.width = random.between(1, largest);
  const bool resized = random.coin();
  const bool floats = stored.dtype != DType::u8;
  work.delivered = stored;
  work.delivered.layout = random.one_of({Layout::nchw, Layout::nhwc});
  if (stored.dtype == DType::u8)
    work.delivered.dtype = random.one_of({DType::u8, DType::f16, DType::bf16, DType::f32});
  if (floats && random.coin()) work.delivered.dtype = random.one_of({DType::f16, DType::bf16, DType::f32});
  if (resized) {
    work.delivered.height = random.between((stored.height + 31) / 32, largest);
    work.delivered.width = random.between((stored.width + 31) / 32, largest);
  } else {
    work.delivered.height = random.between(1, stored.height);
    work.delivered.width = random.between(1, stored.width);
    if (random.coin()) work.delivered.width = std::max(1U, work.delivered.width / 8 * 8);
  }
  work.delivered.width = std::min(work.delivered.width, resized ? largest : stored.width);
  work.normalize = random.coin();
  work.normalization = {{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
  for (std::uint32_t i = random.between(1, 4); i > 0; --i) {
    work.samples.emplace_back(stored.size_bytes());
    random.fill(work.samples.back());  // floats: every bit pattern
    if (floats && random.between(0, 3) > 0)
      fill_floats(random, stored.dtype, random.coin(), work.samples.back());
    if (resized && random.coin())
      work.crops.push_back(
          random_crop(random, stored, random.between(1, stored.height), random.between(1, stored.width)));
    else if (resized)
      work.crops.push_back({0, 0, stored.width, stored.height, random.coin()});
    else
      work.crops.push_back(random_crop(random, stored, work.delivered.height, work.delivered.width));
  }
  for (const auto& sample : work.samples) work.sources.push_back(sample.data());
  return work;
}

// The same for samples that only version 2 of the profile has: u16, or more than four channels of any type.
inline RandomWork random_wide_work(Random& random, std::uint32_t largest, std::uint32_t most_channels = 40) {
  RandomWork work = random_work(random, largest);
  SampleSpec& stored = work.stored;
  stored.dtype = random.one_of({DType::u8, DType::u16, DType::u16, DType::f16, DType::bf16, DType::f32});
  if (stored.dtype != DType::u16 || random.coin()) stored.channels = random.between(5, most_channels);
  work.delivered.channels = stored.channels;
  const bool floats = stored.dtype != DType::u8 && stored.dtype != DType::u16;
  work.delivered.dtype = random.coin() ? stored.dtype : random.one_of({DType::f16, DType::bf16, DType::f32});
  work.normalize = random.coin() && (floats || work.delivered.dtype != stored.dtype);
  if (stored.channels > 4 && random.coin()) {
    work.normalization = {std::vector<float>(stored.channels), std::vector<float>(stored.channels)};
    for (std::size_t c = 0; c < stored.channels; ++c) {
      work.normalization.mean[c] = static_cast<float>(random.between(0, 1000)) / 1000.0F;
      work.normalization.std[c] = static_cast<float>(random.between(1, 1000)) / 999.0F;
    }
  }
  for (std::size_t i = 0; i < work.samples.size(); ++i) {
    work.samples[i].resize(stored.size_bytes());
    random.fill(work.samples[i]);
    if (floats) fill_floats(random, stored.dtype, random.coin(), work.samples[i]);
    work.sources[i] = work.samples[i].data();
  }
  return work;
}

// Tensors of one to four axes, as they are or from float to float.
inline RandomWork random_tensor_work(Random& random) {
  RandomWork work;
  std::vector<std::uint64_t> axes;
  for (std::uint32_t i = random.between(1, 4); i > 0; --i) axes.push_back(random.between(1, 20));
  const DType dtype = random.one_of({DType::f16, DType::bf16, DType::f32, DType::f32, DType::i64,
                                     DType::boolean, DType::u16, DType::f64, DType::i32});
  const bool floats = dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32;
  work.stored = tensor_spec(dtype, axes);
  work.delivered = work.stored;
  if (floats && random.coin()) work.delivered.dtype = random.one_of({DType::f16, DType::bf16, DType::f32});
  for (std::uint32_t i = random.between(1, 4); i > 0; --i) {
    work.samples.emplace_back(work.stored.size_bytes());
    random.fill(work.samples.back());
    if (floats) fill_floats(random, dtype, random.coin(), work.samples.back());
    work.crops.push_back({0, 0, work.stored.width, 1, false});
  }
  for (const auto& sample : work.samples) work.sources.push_back(sample.data());
  return work;
}

// Pictures that packing pays for, unlike noise: a slope with some noise on it, the noise of every strength.
inline void make_smooth(Random& random, RandomWork& work) {
  const SampleSpec& spec = work.stored;
  for (std::vector<std::byte>& sample : work.samples) {
    const std::uint32_t steps[3] = {random.between(0, 255), random.between(0, 3), random.between(0, 3)};
    const std::uint32_t noise = (1U << random.between(0, 7)) - 1;
    const std::uint32_t run = spec.layout == Layout::nchw ? 1 : spec.channels;
    for (std::size_t i = 0; i < sample.size(); ++i) {
      const auto x = static_cast<std::uint32_t>(i / run % spec.width);
      const auto y = static_cast<std::uint32_t>(i / run / spec.width);
      sample[i] = static_cast<std::byte>(steps[0] + steps[1] * x + steps[2] * y + random.between(0, noise));
    }
  }
}

// The same work with its samples, which are u8, as frames of codec packed.
inline RandomWork packed_work(const RandomWork& plain) {
  RandomWork work = plain;
  const Codec codec({CodecSpec::Kind::packed}, plain.stored);
  for (std::size_t i = 0; i < work.samples.size(); ++i) {
    work.samples[i] = codec.encode(plain.samples[i]);
    work.frame_bytes.push_back(work.samples[i].size());
    work.sources[i] = work.samples[i].data();
  }
  return work;
}

// Changes some bytes of a frame, or its length.
inline void break_frame(Random& random, std::vector<std::byte>& frame) {
  switch (random.between(0, 3)) {
    case 0:
      frame.resize(random.between(0, static_cast<std::uint32_t>(frame.size())));
      break;
    case 1:
      frame.resize(frame.size() + 16 * random.between(1, 3));
      break;
    default:
      // Half of the changes at the beginning, where the header and the first codes are.
      for (std::uint32_t i = random.between(1, 3); i > 0; --i) {
        const auto most = static_cast<std::uint32_t>(frame.size() - 1);
        frame[random.between(0, random.coin() ? most : std::min(63U, most))] ^=
            static_cast<std::byte>(1U << random.between(0, 7));
      }
  }
}

}  // namespace shard::testing
