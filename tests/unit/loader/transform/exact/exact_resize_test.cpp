// ExactResize against libshard's resize of photos and against plain loops over exact_filter.hpp, for every
// instruction set of this CPU.
#include "transform/exact/exact_resize.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/system/simd_targets.hpp"
#include "image/resample/resample.hpp"
#include "support/transform/random_work.hpp"
#include "transform/exact/exact_filter.hpp"

namespace shard {
namespace {

using testing::Random;
using Bytes = std::vector<std::byte>;

// A box in a sample, and the view that is made of it. One plane of interleaved channels, or planes of one.
struct Case {
  SampleCrop crop;
  std::uint32_t planes = 1;
  std::uint32_t channels = 3;
  std::uint32_t height = 0;  // of the view
  std::uint32_t width = 0;
  ResizeFilter filter = ResizeFilter::bilinear;
  std::vector<std::uint8_t> fill{};
  std::size_t row_pad = 0;  // bytes between rows of the box

  std::size_t row_bytes() const { return std::size_t{crop.width} * channels + row_pad; }
  // No byte after the last pixel: a sanitizer sees a read past it.
  std::size_t plane_bytes() const { return row_bytes() * crop.height - row_pad; }
  std::size_t view_row_bytes() const { return std::size_t{width} * channels; }
  std::string describe() const {
    return std::to_string(planes) + " x " + std::to_string(channels) + " channels, box " +
           std::to_string(crop.width) + "x" + std::to_string(crop.height) + " to " +
           std::to_string(crop.resized_width) + "x" + std::to_string(crop.resized_height) + " at " +
           std::to_string(crop.column) + "," + std::to_string(crop.row) + " of " + std::to_string(width) +
           "x" + std::to_string(height) + (crop.flip ? " flipped " : " ") +
           std::string(words_of(ResizeFilter{})[static_cast<std::size_t>(filter)]);
  }
};

Case whole(std::uint32_t width, std::uint32_t height, std::uint32_t resized_width,
           std::uint32_t resized_height, ResizeFilter filter) {
  Case test;
  test.crop.width = width;
  test.crop.height = height;
  test.crop.resized_width = test.width = resized_width;
  test.crop.resized_height = test.height = resized_height;
  test.filter = filter;
  test.fill = {1, 2, 3};
  return test;
}

// The view's planes, one after the other.
Bytes resized(ExactResize& resize, const Case& test, const std::vector<Bytes>& planes) {
  std::vector<const std::uint8_t*> begins;
  for (const Bytes& plane : planes) begins.push_back(reinterpret_cast<const std::uint8_t*>(plane.data()));
  ExactResize::Box box;
  box.planes = begins;
  box.row_bytes = test.row_bytes();
  box.channels = test.channels;
  box.crop = test.crop;
  box.height = test.height;
  box.width = test.width;
  box.filter = test.filter;
  box.fill = test.fill;
  resize.start(box);
  // From the last row to the first one in memory, so a row that is too long breaks a finished one.
  const std::size_t row_bytes = test.view_row_bytes();
  const std::size_t rows = std::size_t{test.planes} * test.height;
  Bytes backward(rows * row_bytes);
  std::vector<std::byte*> outs(test.planes);
  for (std::uint32_t y = 0; y < test.height; ++y) {
    for (std::size_t p = 0; p < test.planes; ++p)
      outs[p] = backward.data() + (rows - 1 - (p * test.height + y)) * row_bytes;
    resize.row(y, outs);
  }
  Bytes view(backward.size());
  for (std::size_t row = 0; row < rows; ++row)
    std::memcpy(view.data() + row * row_bytes, backward.data() + (rows - 1 - row) * row_bytes, row_bytes);
  return view;
}

// Outputs of one axis. in(position) and out(output, byte).
template <class In, class Out>
void reference_axis(ResizeFilter filter, std::uint32_t box, std::uint32_t size, const In& in,
                    const Out& out) {
  for (std::uint32_t x = 0; x < size; ++x) {
    const exact::Taps taps(filter, box, size, x);
    std::int32_t sum = exact::kHalf;
    for (std::uint32_t k = 0; k < taps.count; ++k)
      sum += static_cast<std::int32_t>(in(taps.first + k)) * taps.weight(k);
    out(x, exact::byte_of(sum));
  }
}

// The whole box is resized, each channel on its own, and the view is cut out of it.
Bytes reference(const Case& test, const std::vector<Bytes>& planes) {
  const SampleCrop& crop = test.crop;
  const std::size_t channels = test.channels;
  const std::size_t resized_width = crop.resized_width;
  Bytes view(test.planes * test.height * test.view_row_bytes());
  std::vector<std::uint8_t> columns(crop.height * resized_width);
  std::vector<std::uint8_t> pixels(crop.resized_height * resized_width);
  for (std::size_t channel = 0; channel < test.planes * channels; ++channel) {
    const std::size_t p = channel / channels;
    const std::size_t c = channel % channels;
    for (std::size_t y = 0; y < crop.height; ++y)
      reference_axis(
          test.filter, crop.width, crop.resized_width,
          [&](std::size_t at) { return planes[p][y * test.row_bytes() + at * channels + c]; },
          [&](std::size_t x, std::uint8_t byte) { columns[y * resized_width + x] = byte; });
    for (std::size_t x = 0; x < resized_width; ++x)
      reference_axis(
          test.filter, crop.height, crop.resized_height,
          [&](std::size_t at) { return columns[at * resized_width + x]; },
          [&](std::size_t y, std::uint8_t byte) { pixels[y * resized_width + x] = byte; });
    for (std::uint32_t y = 0; y < test.height; ++y)
      for (std::uint32_t x = 0; x < test.width; ++x) {
        const std::int64_t row = std::int64_t{y} - crop.row;
        const std::int64_t column = std::int64_t{crop.flip ? test.width - 1 - x : x} - crop.column;
        const bool inside =
            row >= 0 && row < crop.resized_height && column >= 0 && column < crop.resized_width;
        view[((p * test.height + y) * test.width + x) * channels + c] = std::byte{
            inside ? pixels[static_cast<std::size_t>(row) * resized_width + static_cast<std::size_t>(column)]
                   : test.fill[channel]};
      }
  }
  return view;
}

// What libshard makes of a whole image of three channels.
class Photo final : public image::RowSink {
 public:
  Photo(const Case& test, const Bytes& pixels)
      : row_bytes_(test.view_row_bytes()), view_(row_bytes_ * test.height) {
    const SampleCrop& crop = test.crop;
    image::Filter filter = image::Filter::bilinear;
    if (test.filter == ResizeFilter::bicubic) filter = image::Filter::bicubic;
    if (test.filter == ResizeFilter::box) filter = image::Filter::box;
    image::Resampler resampler;
    resampler.start({crop.width, crop.height}, {crop.resized_width, crop.resized_height},
                    {0, 0, test.width, test.height}, filter, *this);
    const image::Box& needed = resampler.source_box();
    resampler.push(reinterpret_cast<const std::uint8_t*>(pixels.data()) + needed.top * test.row_bytes() +
                       std::size_t{needed.left} * test.channels,
                   test.row_bytes(), needed.height);
  }
  std::uint8_t* begin_row(std::uint32_t y) override {
    return reinterpret_cast<std::uint8_t*>(view_.data() + y * row_bytes_);
  }
  void end_row(std::uint32_t /*y*/) override {}
  const Bytes& view() const { return view_; }

 private:
  std::size_t row_bytes_;
  Bytes view_;
};

std::vector<Bytes> random_planes(Random& random, const Case& test) {
  std::vector<Bytes> planes(test.planes, Bytes(test.plane_bytes()));
  const bool extreme = random.coin();  // overshoots of bicubic are cut
  for (Bytes& plane : planes) {
    random.fill(plane);
    if (extreme)
      for (std::byte& byte : plane) byte = byte < std::byte{128} ? std::byte{0} : std::byte{255};
  }
  return planes;
}

void expect_photo(Random& random, ExactResize& resize, const Case& test) {
  const std::vector<Bytes> planes = random_planes(random, test);
  ASSERT_EQ(resized(resize, test, planes), Photo(test, planes[0]).view()) << test.describe();
}

void expect_reference(Random& random, ExactResize& resize, const Case& test) {
  const std::vector<Bytes> planes = random_planes(random, test);
  ASSERT_EQ(resized(resize, test, planes), reference(test, planes)) << test.describe();
}

ResizeFilter random_filter(Random& random) {
  return random.one_of({ResizeFilter::bilinear, ResizeFilter::bicubic, ResizeFilter::box});
}

// Mostly small.
std::uint32_t random_side(Random& random, std::uint32_t largest) {
  return random.between(1, random.one_of({4U, 20U, 60U, largest}));
}

void set_channels(Random& random, Case& test) {
  const bool planar = random.coin();
  test.planes = planar ? random.between(1, 4) : 1;
  test.channels = planar ? 1 : random.between(1, 4);
  test.fill.resize(std::size_t{test.planes} * test.channels);
  for (std::uint8_t& byte : test.fill) byte = static_cast<std::uint8_t>(random.between(0, 255));
  test.row_pad = random.one_of({0U, 0U, 1U, 100U});
}

class ExactResizeOn : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    use_simd_target(GetParam());
    resize_ = std::make_unique<ExactResize>();
  }
  void TearDown() override { use_simd_target(""); }

  Random random_{7};
  std::unique_ptr<ExactResize> resize_;
};

INSTANTIATE_TEST_SUITE_P(Transform, ExactResizeOn, ::testing::ValuesIn(simd_targets()),
                         [](const auto& set) { return set.param; });

TEST_P(ExactResizeOn, GivesThePhotosOfConversion) {
  for (ResizeFilter filter : {ResizeFilter::bilinear, ResizeFilter::bicubic, ResizeFilter::box}) {
    for (const Case& test : {
             whole(1, 1, 50, 50, filter),        // up
             whole(3, 2, 200, 100, filter),      //
             whole(3000, 2000, 7, 5, filter),    // down, by far
             whole(1000, 3, 1, 1, filter),       //
             whole(500, 400, 224, 224, filter),  // the usual sizes
             whole(301, 249, 224, 224, filter),  //
             whole(448, 448, 224, 224, filter),  // a tap's weight rounds to 0
             whole(60, 70, 60, 31, filter),      // one axis is copied
             whole(60, 70, 91, 70, filter),      //
             whole(60, 70, 60, 70, filter),      // both
             whole(65535, 2, 224, 3, filter),    // the largest box
             whole(2, 65535, 3, 224, filter),    //
         })
      expect_photo(random_, *resize_, test);
    for (int round = 0; round < 100 && !HasFatalFailure(); ++round)
      expect_photo(random_, *resize_,
                   whole(random_side(random_, 400), random_side(random_, 400), random_side(random_, 300),
                         random_side(random_, 300), filter));
  }
}

TEST_P(ExactResizeOn, ShowsPartsOfTheResizedBox) {
  for (int round = 0; round < 200 && !HasFatalFailure(); ++round) {
    Case test = whole(random_side(random_, 200), random_side(random_, 200), random_side(random_, 150),
                      random_side(random_, 150), random_filter(random_));
    set_channels(random_, test);
    const std::uint32_t top = random_.between(0, test.height - 1);
    const std::uint32_t left = random_.between(0, test.width - 1);
    test.height = random_.between(1, test.height - top);
    test.width = random_.between(1, test.width - left);
    test.crop.row = -static_cast<std::int32_t>(top);
    test.crop.column = -static_cast<std::int32_t>(left);
    test.crop.flip = random_.coin();
    expect_reference(random_, *resize_, test);
  }
}

TEST_P(ExactResizeOn, FillsWhatTheResizedBoxDoesNotCover) {
  for (int round = 0; round < 200 && !HasFatalFailure(); ++round) {
    Case test = whole(random_side(random_, 100), random_side(random_, 100), random_side(random_, 80),
                      random_side(random_, 80), random_filter(random_));
    set_channels(random_, test);
    test.crop.row = static_cast<std::int32_t>(random_.between(0, 20));
    test.crop.column = static_cast<std::int32_t>(random_.between(0, 20));
    test.height += static_cast<std::uint32_t>(test.crop.row) + random_.between(0, 20);
    test.width += static_cast<std::uint32_t>(test.crop.column) + random_.between(0, 20);
    test.crop.flip = random_.coin();
    expect_reference(random_, *resize_, test);
  }
}

TEST_P(ExactResizeOn, PlacesTheResizedBoxAnywhere) {
  for (int round = 0; round < 300 && !HasFatalFailure(); ++round) {
    Case test = whole(random_side(random_, 50), random_side(random_, 50), random_side(random_, 40),
                      random_side(random_, 40), random_filter(random_));
    set_channels(random_, test);
    test.height = random_side(random_, 40);
    test.width = random_side(random_, 40);
    // Also where nothing of it is in the view.
    test.crop.row = static_cast<std::int32_t>(random_.between(0, 100)) - 50;
    test.crop.column = static_cast<std::int32_t>(random_.between(0, 100)) - 50;
    test.crop.flip = random_.coin();
    expect_reference(random_, *resize_, test);
  }
}

TEST_P(ExactResizeOn, CopiesAnAxisThatKeepsItsSize) {
  for (int round = 0; round < 100 && !HasFatalFailure(); ++round) {
    Case test = whole(random_side(random_, 90), random_side(random_, 90), random_side(random_, 90),
                      random_side(random_, 90), random_filter(random_));
    const std::uint32_t axes = random_.between(1, 3);
    if ((axes & 1U) != 0) test.crop.resized_width = test.width = test.crop.width;
    if ((axes & 2U) != 0) test.crop.resized_height = test.height = test.crop.height;
    set_channels(random_, test);
    test.crop.flip = random_.coin();
    test.crop.row = static_cast<std::int32_t>(random_.between(0, 10)) - 5;
    test.crop.column = static_cast<std::int32_t>(random_.between(0, 10)) - 5;
    expect_reference(random_, *resize_, test);
  }
}

}  // namespace
}  // namespace shard
