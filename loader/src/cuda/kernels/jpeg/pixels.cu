// Samples -> pixels of the box: upsampling, colour, channels, orientation. A lane makes 4 x 2 pixels at a
// time, of two rows that lie between the same two rows of samples.
#include "cuda/kernels/jpeg/quads.cuh"

namespace shard::gpu {
namespace {

constexpr std::uint32_t kPixelThreads = kJpegStrips * kLanesOfWarp;
constexpr std::uint32_t kWordsOfStrip = kJpegStrip * 3 / 4;
using StripWords = std::uint32_t[kWordsOfStrip + 2];

struct Image {
  const JpegImage& made;
  const JpegTask& task;
  const JpegPlane* planes;      // shared memory
  const std::uint8_t* samples;  // of the image
};

// Where the rows of an upright image of 3 channels go.
struct Target {
  std::byte* pixels;
  std::uint32_t width;
  std::uint32_t left;  // of the box
  std::uint32_t right;
};

// A row of a strip. `words`: behind one more, the strip's, whose first pixel is `x`. They are turned so that
// they are written where words are aligned.
__device__ void write_row(const Target& target, std::uint32_t x, std::uint32_t y, const StripWords& words) {
  const std::uint32_t lane = threadIdx.x % kLanesOfWarp;
  std::byte* const begin = target.pixels + (std::size_t{y} * target.width + x) * 3;
  const auto turn = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(begin) & 3U);
  std::byte* const aligned = begin - turn;
  // Bytes from `aligned` on that are the box's, and the words that are whole.
  const std::uint32_t low = turn + (x < target.left ? target.left - x : 0) * 3;
  const std::uint32_t high = turn + (min(x + kJpegStrip, target.right) - x) * 3;
  const std::uint32_t first = (low + 3) / 4;
  const std::uint32_t end = high / 4;
#pragma unroll
  for (std::uint32_t k = 0; k < kWordsOfStrip; k += kLanesOfWarp) {
    const std::uint32_t i = first + k + lane;
    if (i < end)  // its first `turn` bytes are those of the word before
      reinterpret_cast<std::uint32_t*>(aligned)[i] = __funnelshift_l(words[i], words[i + 1], 8 * turn);
  }
  // Three bytes at most before them, and behind them.
  const std::uint32_t at = lane < 4 ? low + lane : max(4 * end, low) + lane - 4;
  if (lane < 8 && (lane < 4 ? at < min(4 * first, high) : end >= first && at < high))
    aligned[at] = reinterpret_cast<const std::byte*>(words)[4 + at - turn];
}

// The whole warp. Files of Y, Cb, Cr, upright, with 3 channels.
template <jpeg::Upsampling kWay>
__device__ void make_strip(const Image& image, const Target& target, const QuadPlace& place,
                           StripWords* stage) {
  const std::uint32_t lane = threadIdx.x % kLanesOfWarp;
  if (place.x < target.right) {
    std::uint32_t words[kJpegRows][3];
    rgb_quads<kWay>(image.planes, image.samples, place, words);
#pragma unroll
    for (std::uint32_t row = 0; row < kJpegRows; ++row)
#pragma unroll
      for (std::uint32_t i = 0; i < 3; ++i) stage[row][1 + lane * 3 + i] = words[row][i];
  }
  __syncwarp();
#pragma unroll
  for (std::uint32_t row = 0; row < kJpegRows; ++row)
    if (row >= place.first_row && row < place.end_row)
      write_row(target, place.x - lane * kJpegQuad, place.y(row), stage[row]);
  __syncwarp();
}

// Any file, pixel by pixel.
__device__ void make_each(const Image& image, const QuadPlace& place) {
  const JpegTask& task = image.task;
  const jpeg::Layout& layout = image.made.layout;
  const std::uint32_t left = max(place.x, task.box.left);
  const std::uint32_t right = min(place.x + kJpegQuad, task.box.left + task.box.width);
#pragma unroll 1
  for (std::uint32_t row = place.first_row; row < place.end_row; ++row)
#pragma unroll 1
    for (std::uint32_t x = left; x < right; ++x) {
      std::uint8_t pixel[jpeg::kMostComponents];
#pragma unroll
      for (std::uint32_t c = 0; c < jpeg::kMostComponents; ++c) {
        if (c >= layout.components) break;
        const JpegPlane& plane = image.planes[c];
        pixel[c] = jpeg::upsampled(layout, layout.planes[c], plane.way,
                                   {image.samples + plane.begin, plane.left, plane.top, plane.stride}, x,
                                   place.y(row));
      }
      jpeg::convert_colour(layout.colour, pixel);
      if (task.channels == 3) jpeg::make_rgb(layout.components, pixel);
      const jpeg::Pixel to = jpeg::upright_place(task.file, {x, place.y(row)});
      std::byte* const target =
          task.pixels + (std::size_t{to.y} * task.file.upright_width() + to.x) * task.channels;
#pragma unroll
      for (std::uint32_t c = 0; c < jpeg::kMostComponents; ++c)
        if (c < task.channels) target[c] = static_cast<std::byte>(pixel[c]);
    }
}

// Calls make(place) for each pair of rows of this warp's strip.
template <class Make>
__device__ void for_pairs(const JpegTask& task, std::uint32_t warp, const Make& make) {
  const std::uint32_t strips = jpeg_strips(task.box);
  const std::uint32_t bottom = task.box.top + task.box.height;
  QuadPlace place;
  place.x =
      (task.box.left / kJpegQuad + warp % strips * kLanesOfWarp + threadIdx.x % kLanesOfWarp) * kJpegQuad;
  const std::uint32_t first = jpeg_first_pair(task.box) + warp / strips * kJpegPairs;
  const std::uint32_t end = min(first + kJpegPairs, jpeg_end_pair(task.box));
#pragma unroll 1
  for (std::uint32_t pair = first; pair < end; ++pair) {
    place.pair = pair;
    place.first_row = 2 * pair > task.box.top ? 0 : 1;
    place.end_row = 2 * pair < bottom ? 2 : 1;
    make(place);
  }
}

__global__ void __launch_bounds__(kPixelThreads) make_pixels(JpegLaunch launch) {
  __shared__ StripWords stages[kJpegStrips][kJpegRows];
  constexpr std::uint32_t kPlaneWords = sizeof(JpegPlane) * jpeg::kMostComponents / 4;
  alignas(8) __shared__ std::uint32_t plane_words[kPlaneWords];
  const std::uint32_t number = image_of_block(launch.pixels, launch.count);
  const JpegImage& image = launch.images[number];
  if (image.usable == 0) return;
  if (threadIdx.x < kPlaneWords)
    plane_words[threadIdx.x] = reinterpret_cast<const std::uint32_t*>(image.planes)[threadIdx.x];
  __syncthreads();
  const JpegTask task = launch.tasks[number];
  const std::uint32_t in_block = threadIdx.x / kLanesOfWarp;
  const std::uint32_t warp = (blockIdx.x - launch.pixels.first[number]) * kJpegStrips + in_block;
  if (warp >= jpeg_warps(task.box)) return;
  const auto* const planes = reinterpret_cast<const JpegPlane*>(plane_words);
  const Image made{image, task, planes, launch.samples + task.first_line * jpeg::kBlockValues};
  const jpeg::Upsampling way = planes[1].way;
  const bool plain = task.channels == 3 && task.file.orientation == 1 &&
                     image.layout.colour == jpeg::Colour::ycc && planes[0].way == jpeg::Upsampling::none &&
                     planes[2].way == way;
  StripWords* const stage = stages[in_block];
  const Target target{task.pixels, task.file.width(), task.box.left, task.box.left + task.box.width};
  const auto strips = [&](auto make) {
    for_pairs(task, warp, [&](const QuadPlace& place) { make(made, target, place, stage); });
  };
  if (plain && way == jpeg::Upsampling::both)
    strips([](auto&&... all) { make_strip<jpeg::Upsampling::both>(all...); });
  else if (plain && way == jpeg::Upsampling::none)
    strips([](auto&&... all) { make_strip<jpeg::Upsampling::none>(all...); });
  else if (plain && way == jpeg::Upsampling::across)
    strips([](auto&&... all) { make_strip<jpeg::Upsampling::across>(all...); });
  else if (plain && way == jpeg::Upsampling::down)
    strips([](auto&&... all) { make_strip<jpeg::Upsampling::down>(all...); });
  else
    for_pairs(task, warp, [&](const QuadPlace& place) {
      if (place.x < task.box.left + task.box.width) make_each(made, place);
    });
}

}  // namespace

void launch_jpeg_pixels(const JpegLaunch& launch, cudaStream_t stream) {
  make_pixels<<<launch.pixels.count, kPixelThreads, 0, stream>>>(launch);
}

}  // namespace shard::gpu
