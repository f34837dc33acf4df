// Samples and frames of codec packed, and the checks that all its coders must pass.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "format/codec/packed_frame.hpp"
#include "shard/error.hpp"

namespace shard::testing {

enum class Content { zero, constant, gradient, smooth, steps, noise };
inline constexpr std::array kContents{Content::zero,   Content::constant, Content::gradient,
                                      Content::smooth, Content::steps,    Content::noise};

// [channel, row, column].
inline std::vector<std::byte> make_content(const packed::Shape& shape, Content content,
                                           std::mt19937& random) {
  std::vector<std::byte> planes(shape.pixels_bytes());
  const auto base = static_cast<int>(random() % 256);
  int value = base;
  std::size_t i = 0;
  for (std::uint32_t channel = 0; channel < shape.channels; ++channel) {
    for (std::uint32_t row = 0; row < shape.height; ++row) {
      for (std::uint32_t column = 0; column < shape.width; ++column, ++i) {
        switch (content) {
          case Content::zero:
            value = 0;
            break;
          case Content::constant:
            value = base;
            break;
          case Content::gradient:
            value = base + static_cast<int>(row + 2 * column + 40 * channel);
            break;
          case Content::smooth:
            value += static_cast<int>(random() % 7) - 3;
            break;
          case Content::steps:  // flat pieces with jumps of any size: every code occurs
            if (random() % 8 == 0) value += static_cast<int>(random() >> (random() % 8 + 24));
            break;
          case Content::noise:
            value = static_cast<int>(random() % 256);
            break;
        }
        planes[i] = static_cast<std::byte>(value);
      }
    }
  }
  return planes;
}

inline std::vector<std::byte> interleaved(const packed::Shape& shape, const std::vector<std::byte>& planes) {
  std::vector<std::byte> pixels(planes.size());
  const std::size_t plane = std::size_t{shape.height} * shape.width;
  for (std::size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = planes[i % shape.channels * plane + i / shape.channels];
  return pixels;
}

// The coders to hold against each other, by name.
inline const std::vector<packed::NamedKernels>& all_kernels() {
  static const std::vector<packed::NamedKernels> all = packed::all_kernels();
  return all;
}

// A copy whose end is the end of its memory, so that a sanitizer sees a read behind it.
class Exact {
 public:
  explicit Exact(const std::vector<std::byte>& bytes)
      : size_(bytes.size()), bytes_(std::make_unique<std::byte[]>(bytes.size())) {
    std::copy(bytes.begin(), bytes.end(), bytes_.get());
  }
  std::span<const std::byte> view() const { return {bytes_.get(), size_}; }

 private:
  std::size_t size_;
  std::unique_ptr<std::byte[]> bytes_;
};

// Nothing when the frame is refused. Bytes before and behind the sample stay as they are.
inline std::optional<std::vector<std::byte>> try_decode(const packed::Kernels& kernels,
                                                        const packed::Shape& shape, Layout layout,
                                                        std::span<const std::byte> frame) {
  constexpr std::size_t kGuard = 64;
  const std::size_t size = shape.pixels_bytes();
  std::vector<std::byte> memory(size + 2 * kGuard, std::byte{0xa5});
  try {
    packed::decode(kernels, shape, layout, frame, std::span(memory).subspan(kGuard, size));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::corrupt) << error.what();
    return std::nullopt;
  }
  const auto untouched = [](std::byte b) { return b == std::byte{0xa5}; };
  EXPECT_TRUE(std::all_of(memory.begin(), memory.begin() + kGuard, untouched));
  EXPECT_TRUE(std::all_of(memory.end() - kGuard, memory.end(), untouched));
  return std::vector<std::byte>(memory.begin() + kGuard, memory.end() - kGuard);
}

// Every coder, in both layouts, says the same of `frame`; `valid`: what it must be.
inline void expect_same_verdict(const packed::Shape& shape, const std::vector<std::byte>& frame,
                                std::optional<bool> valid = {}) {
  const Exact exact(frame);
  const auto expected = try_decode(packed::scalar_kernels(), shape, Layout::nchw, exact.view());
  EXPECT_EQ(expected.has_value(), valid.value_or(expected.has_value()));
  for (const auto& [name, kernels] : all_kernels()) {
    EXPECT_EQ(try_decode(kernels, shape, Layout::nchw, exact.view()), expected) << name;
    const auto pixels = try_decode(kernels, shape, Layout::nhwc, exact.view());
    EXPECT_EQ(pixels.has_value(), expected.has_value()) << name;
    if (pixels && expected) {
      EXPECT_EQ(*pixels, interleaved(shape, *expected)) << name;
    }
  }
}

inline void expect_comes_back(const packed::Shape& shape, Content content, std::mt19937& random) {
  SCOPED_TRACE(::testing::Message() << "content " << static_cast<int>(content) << ", " << shape.channels
                                    << "x" << shape.height << "x" << shape.width);
  const std::vector<std::byte> planes = make_content(shape, content, random);
  const std::vector<std::byte> pixels = interleaved(shape, planes);
  const auto expected = packed::encode(packed::scalar_kernels(), shape, Layout::nchw, planes);
  EXPECT_EQ(expected.size() % 16, 0U);
  EXPECT_GE(expected.size(), packed::least_frame_bytes(shape));
  const Exact frame(expected);
  for (const auto& [name, kernels] : all_kernels()) {
    ASSERT_TRUE(packed::encode(kernels, shape, Layout::nchw, Exact(planes).view()) == expected) << name;
    ASSERT_TRUE(packed::encode(kernels, shape, Layout::nhwc, Exact(pixels).view()) == expected) << name;
    ASSERT_TRUE(try_decode(kernels, shape, Layout::nchw, frame.view()) == planes) << name;
    ASSERT_TRUE(try_decode(kernels, shape, Layout::nhwc, frame.view()) == pixels) << name;
  }
}

}  // namespace shard::testing
