// Samples -> pixels of the box: upsampling, colour, channels, orientation. A lane makes 4 x 2 pixels, of two
// rows that lie between the same two rows of samples.
#include "cuda/kernels/jpeg/quads.cuh"

namespace shard::gpu {
namespace {

constexpr std::uint32_t kThreads = kJpegStrips * kLanesOfWarp;
constexpr std::uint32_t kWordsOfStrip = kJpegStrip * 3 / 4;
using StripWords = std::uint32_t[kWordsOfStrip + 2];

// A row of a strip of an upright image of 3 channels. `words`: behind one more, the strip's, whose first
// pixel is `x`. They are turned so that they are written where words are aligned.
__device__ void write_row(const JpegTask& task, std::uint32_t x, std::uint32_t y, const StripWords& words) {
  const std::uint32_t right = task.box.left + task.box.width;
  std::byte* const begin = task.pixels + (std::size_t{y} * task.file.width() + x) * 3;
  const auto turn = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(begin) & 3U);
  std::byte* const aligned = begin - turn;
  const std::uint32_t low = turn + (x < task.box.left ? task.box.left - x : 0) * 3;
  const std::uint32_t high = turn + (min(x + kJpegStrip, right) - x) * 3;
#pragma unroll
  for (std::uint32_t first = 0; first <= kWordsOfStrip; first += kLanesOfWarp) {
    const std::uint32_t i = first + threadIdx.x % kLanesOfWarp;
    if (4 * i + 4 <= low || 4 * i >= high) continue;
    // Its first `turn` bytes belong to the word before.
    const std::uint32_t word = __funnelshift_l(words[i], words[i + 1], 8 * turn);
    if (4 * i >= low && 4 * i + 4 <= high) {
      reinterpret_cast<std::uint32_t*>(aligned)[i] = word;
    } else {
      for (std::uint32_t k = 4 * i; k < 4 * i + 4; ++k)
        if (k >= low && k < high) aligned[k] = static_cast<std::byte>(word >> (8 * (k - 4 * i)));
    }
  }
}

// The whole warp. Files of Y, Cb, Cr, upright, with 3 channels.
template <jpeg::Upsampling kWay>
__device__ void make_strip(const JpegImage& image, const JpegTask& task, const std::uint8_t* samples,
                           const QuadPlace& place, StripWords* stage) {
  const std::uint32_t lane = threadIdx.x % kLanesOfWarp;
  if (place.x < task.box.left + task.box.width) {
    std::uint32_t words[kJpegRows][3];
    rgb_quads<kWay>(image, samples, place, words);
#pragma unroll
    for (std::uint32_t row = 0; row < kJpegRows; ++row)
#pragma unroll
      for (std::uint32_t i = 0; i < 3; ++i) stage[row][1 + lane * 3 + i] = words[row][i];
  }
  __syncwarp();
  const std::uint32_t x = place.x - lane * kJpegQuad;
  write_row(task, x, place.y[0], stage[0]);
  if (place.y[1] != place.y[0]) write_row(task, x, place.y[1], stage[1]);
}

// Any file, pixel by pixel.
__device__ void make_each(const JpegImage& image, const JpegTask& task, const std::uint8_t* samples,
                          const QuadPlace& place) {
  const jpeg::Layout& layout = image.layout;
  const std::uint32_t rows = place.y[0] == place.y[1] ? 1 : kJpegRows;
  const std::uint32_t left = max(place.x, task.box.left);
  const std::uint32_t right = min(place.x + kJpegQuad, task.box.left + task.box.width);
#pragma unroll 1
  for (std::uint32_t row = 0; row < rows; ++row)
#pragma unroll 1
    for (std::uint32_t x = left; x < right; ++x) {
      std::uint8_t pixel[jpeg::kMostComponents];
#pragma unroll
      for (std::uint32_t c = 0; c < jpeg::kMostComponents; ++c) {
        if (c >= layout.components) break;
        const PlaneView plane(image, samples, c);
        pixel[c] = jpeg::upsampled(layout, layout.planes[c], jpeg::upsampling_of(layout, c),
                                   {plane.data, plane.left, plane.top, plane.stride}, x, place.y[row]);
      }
      jpeg::convert_colour(layout.colour, pixel);
      if (task.channels == 3) jpeg::make_rgb(layout.components, pixel);
      const jpeg::Pixel to = jpeg::upright_place(task.file, {x, place.y[row]});
      std::byte* const target =
          task.pixels + (std::size_t{to.y} * task.file.upright_width() + to.x) * task.channels;
#pragma unroll
      for (std::uint32_t c = 0; c < jpeg::kMostComponents; ++c)
        if (c < task.channels) target[c] = static_cast<std::byte>(pixel[c]);
    }
}

__global__ void __launch_bounds__(kThreads) make_pixels(JpegLaunch launch) {
  __shared__ StripWords stages[kJpegStrips][kJpegRows];
  const std::uint32_t number = image_of_block(launch.pixels, launch.count);
  const JpegImage& image = launch.images[number];
  if (image.usable == 0) return;
  const JpegTask& task = launch.tasks[number];
  const std::uint32_t warp = threadIdx.x / kLanesOfWarp;
  const std::uint32_t lane = threadIdx.x % kLanesOfWarp;
  const std::uint32_t mine = (blockIdx.x - launch.pixels.first[number]) * kJpegStrips + warp;
  const std::uint32_t strips = jpeg_strips(task.box);
  if (mine >= strips * jpeg_pairs(task.box)) return;
  const std::uint32_t pair = jpeg_first_pair(task.box) + mine / strips;
  QuadPlace place;
  place.x = (task.box.left / kJpegQuad + mine % strips * kLanesOfWarp + lane) * kJpegQuad;
  // Of the first and the last pair, one row may be outside of the box: the other one counts twice.
  place.y[0] = 2 * pair > task.box.top ? 2 * pair - 1 : 2 * pair;
  place.y[1] = 2 * pair < task.box.top + task.box.height ? 2 * pair : 2 * pair - 1;
  const std::uint8_t* const samples = launch.samples + task.first_line * jpeg::kBlockValues;
  const bool plain = task.channels == 3 && task.file.orientation == 1 &&
                     image.layout.colour == jpeg::Colour::ycc &&
                     jpeg::upsampling_of(image.layout, 0) == jpeg::Upsampling::none;
  const jpeg::Upsampling way = jpeg::upsampling_of(image.layout, 1);
  const bool same = plain && way == jpeg::upsampling_of(image.layout, 2);
  if (same && way == jpeg::Upsampling::both)
    make_strip<jpeg::Upsampling::both>(image, task, samples, place, stages[warp]);
  else if (same && way == jpeg::Upsampling::none)
    make_strip<jpeg::Upsampling::none>(image, task, samples, place, stages[warp]);
  else if (same && way == jpeg::Upsampling::across)
    make_strip<jpeg::Upsampling::across>(image, task, samples, place, stages[warp]);
  else if (same && way == jpeg::Upsampling::down)
    make_strip<jpeg::Upsampling::down>(image, task, samples, place, stages[warp]);
  else if (place.x < task.box.left + task.box.width)
    make_each(image, task, samples, place);
}

}  // namespace

void launch_jpeg_pixels(const JpegLaunch& launch, cudaStream_t stream) {
  make_pixels<<<launch.pixels.count, kThreads, 0, stream>>>(launch);
}

}  // namespace shard::gpu
