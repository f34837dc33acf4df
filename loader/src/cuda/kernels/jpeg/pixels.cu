// Samples -> pixels of the box: upsampling, colour, channels, orientation. A lane makes 4 x 2 pixels, of two
// rows that lie between the same two rows of samples. Usual files take the ways that are written for words of
// four samples; they give the bytes of jpeg::upsampled(), which the others call for each pixel.
#include "cuda/kernels/jpeg/common.cuh"
#include "jpeg/colour.hpp"
#include "jpeg/upsample.hpp"

namespace shard::gpu {
namespace {

constexpr std::uint32_t kRows = 2;
constexpr std::uint32_t kThreads = kJpegStrips * kLanesOfWarp;
constexpr std::uint32_t kWordsOfStrip = kJpegStrip * 3 / 4;

// The quads of a component: four samples at a time.
struct Quads {
  std::int32_t row[kRows][kJpegQuad];
};

struct View {
  const JpegImage& image;
  const JpegTask& task;
  const std::uint8_t* planes;  // the image's samples
  std::uint32_t x;             // of the first pixel, a multiple of 4
  std::uint32_t y[kRows];      // of the image, inside the box

  __device__ jpeg::Samples samples(std::uint32_t component) const {
    const jpeg::Plane& plane = image.layout.planes[component];
    return {planes + std::size_t{image.plan.first_line[component]} * jpeg::kBlockValues,
            image.window.columns.begin * plane.h * jpeg::kBlockSide,
            image.window.rows.begin * plane.v * jpeg::kBlockSide,
            image.window.columns.size() * plane.h * jpeg::kBlockSide};
  }
};

__device__ std::uint32_t word_at(const jpeg::Samples& samples, std::uint32_t x, std::uint32_t y) {
  return *reinterpret_cast<const std::uint32_t*>(
      samples.data + std::size_t{y - samples.top} * samples.stride + (x - samples.left));
}

__device__ std::int32_t byte_of_word(std::uint32_t word, std::uint32_t i) {
  return static_cast<std::int32_t>(word >> (8 * i) & 0xFFU);
}

__device__ void whole(const View& view, std::uint32_t component, Quads& out) {
  const jpeg::Samples samples = view.samples(component);
#pragma unroll
  for (std::uint32_t row = 0; row < kRows; ++row) {
    const std::uint32_t word = word_at(samples, view.x, view.y[row]);
#pragma unroll
    for (std::uint32_t i = 0; i < kJpegQuad; ++i) out.row[row][i] = byte_of_word(word, i);
  }
}

// Samples x / 2 - 1 to x / 2 + 2 of a row, those beyond the edge as at the edge.
__device__ void four_samples(const jpeg::Samples& samples, const jpeg::Plane& plane, std::uint32_t x,
                             std::uint32_t y, std::int32_t* out) {
  const std::uint32_t middle = x / 2;
  const std::uint8_t* const row = samples.data + std::size_t{y - samples.top} * samples.stride - samples.left;
  const std::uint32_t last = plane.width - 1;
  const std::uint32_t pair = *reinterpret_cast<const std::uint16_t*>(row + middle);
  out[0] = row[middle == 0 ? 0 : middle - 1];
  out[1] = static_cast<std::int32_t>(pair & 0xFFU);
  out[2] = middle + 1 <= last ? static_cast<std::int32_t>(pair >> 8) : out[1];
  out[3] = row[middle + 2 <= last ? middle + 2 : last];
}

__device__ void across(const View& view, std::uint32_t component, Quads& out) {
  const jpeg::Samples samples = view.samples(component);
#pragma unroll
  for (std::uint32_t row = 0; row < kRows; ++row) {
    std::int32_t near[4];
    four_samples(samples, view.image.layout.planes[component], view.x, view.y[row], near);
    out.row[row][0] = (3 * near[1] + near[0] + 1) >> 2;
    out.row[row][1] = (3 * near[1] + near[2] + 2) >> 2;
    out.row[row][2] = (3 * near[2] + near[1] + 1) >> 2;
    out.row[row][3] = (3 * near[2] + near[3] + 2) >> 2;
  }
}

// The two rows of samples between which the pair of rows lies.
__device__ void rows_between(const View& view, const jpeg::Plane& plane, std::uint32_t* rows) {
  const std::uint32_t pair = (view.y[0] + 1) / 2;
  rows[0] = pair == 0 ? 0 : pair - 1;
  rows[1] = pair < plane.height ? pair : plane.height - 1;
}

__device__ void both(const View& view, std::uint32_t component, Quads& out) {
  const jpeg::Samples samples = view.samples(component);
  const jpeg::Plane& plane = view.image.layout.planes[component];
  std::uint32_t rows[2];
  rows_between(view, plane, rows);
  std::int32_t near[2][4];
  four_samples(samples, plane, view.x, rows[0], near[0]);
  four_samples(samples, plane, view.x, rows[1], near[1]);
#pragma unroll
  for (std::uint32_t row = 0; row < kRows; ++row) {
    // An odd row is nearer to the upper one.
    const bool upper = view.y[row] % 2 == 1;
    std::int32_t sum[4];
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i)
      sum[i] = upper ? 3 * near[0][i] + near[1][i] : 3 * near[1][i] + near[0][i];
    out.row[row][0] = (3 * sum[1] + sum[0] + 8) >> 4;
    out.row[row][1] = (3 * sum[1] + sum[2] + 7) >> 4;
    out.row[row][2] = (3 * sum[2] + sum[1] + 8) >> 4;
    out.row[row][3] = (3 * sum[2] + sum[3] + 7) >> 4;
  }
}

__device__ void down(const View& view, std::uint32_t component, Quads& out) {
  const jpeg::Samples samples = view.samples(component);
  std::uint32_t rows[2];
  rows_between(view, view.image.layout.planes[component], rows);
  const std::uint32_t words[2] = {word_at(samples, view.x, rows[0]), word_at(samples, view.x, rows[1])};
#pragma unroll
  for (std::uint32_t row = 0; row < kRows; ++row) {
    const bool upper = view.y[row] % 2 == 1;
#pragma unroll
    for (std::uint32_t i = 0; i < kJpegQuad; ++i) {
      const std::int32_t near = byte_of_word(words[upper ? 0 : 1], i);
      const std::int32_t far = byte_of_word(words[upper ? 1 : 0], i);
      out.row[row][i] = (3 * near + far + (upper ? 2 : 1)) >> 2;
    }
  }
}

__device__ void each(const View& view, std::uint32_t component, jpeg::Upsampling way, Quads& out) {
  const jpeg::Layout& layout = view.image.layout;
  const jpeg::Samples samples = view.samples(component);
#pragma unroll
  for (std::uint32_t row = 0; row < kRows; ++row)
#pragma unroll
    for (std::uint32_t i = 0; i < kJpegQuad; ++i) {
      const std::uint32_t x = view.x + i < layout.width ? view.x + i : layout.width - 1;
      out.row[row][i] = jpeg::upsampled(layout, layout.planes[component], way, samples, x, view.y[row]);
    }
}

// Quads reach beyond the box, but never beyond the window: its planes are whole blocks.
__device__ void upsample(const View& view, std::uint32_t component, jpeg::Upsampling way, Quads& out) {
  if (way == jpeg::Upsampling::none)
    whole(view, component, out);
  else if (way == jpeg::Upsampling::both)
    both(view, component, out);
  else if (way == jpeg::Upsampling::across)
    across(view, component, out);
  else if (way == jpeg::Upsampling::down)
    down(view, component, out);
  else
    each(view, component, way, out);
}

// The four pixels of a row as they are delivered.
struct Pixels {
  std::uint8_t bytes[kJpegQuad * jpeg::kMostComponents];
};

// Pixels of 3 channels of an upright image: the strip's words are turned in shared memory so that each row is
// written in words that are aligned where they go.
__device__ void write_strip(const View& view, const std::uint32_t (&words)[kRows][3],
                            std::uint32_t (*stage)[kWordsOfStrip + 2]) {
  const std::uint32_t lane = threadIdx.x % kLanesOfWarp;
  const JpegTask& task = view.task;
  const std::uint32_t strip_x = view.x - lane * kJpegQuad;
  const std::uint32_t first = strip_x < task.box.left ? task.box.left - strip_x : 0;
  const std::uint32_t end = min(strip_x + kJpegStrip, task.box.left + task.box.width) - strip_x;
#pragma unroll
  for (std::uint32_t row = 0; row < kRows; ++row)
#pragma unroll
    for (std::uint32_t i = 0; i < 3; ++i) stage[row][1 + lane * 3 + i] = words[row][i];
  __syncwarp();
  // Where byte 0 of the strip would go.
#pragma unroll
  for (std::uint32_t row = 0; row < kRows; ++row) {
    if (row == 1 && view.y[1] == view.y[0]) break;
    const std::int64_t begin = reinterpret_cast<std::int64_t>(task.pixels) +
                               (std::int64_t{view.y[row]} * task.file.width() + strip_x) * 3;
    const auto turn = static_cast<std::uint32_t>(begin & 3);
    const std::int64_t low = begin + first * 3;
    const std::int64_t high = begin + end * 3;
    const std::int64_t aligned = begin - turn;  // words from here on
    for (std::uint32_t i = lane; aligned + 4 * std::int64_t{i} < high; i += kLanesOfWarp) {
      // The first `turn` bytes belong to the word before.
      const std::uint32_t word = __funnelshift_l(stage[row][i], stage[row][i + 1], 8 * turn);
      const std::int64_t at = aligned + 4 * std::int64_t{i};
      if (at >= low && at + 4 <= high) {
        *reinterpret_cast<std::uint32_t*>(at) = word;
      } else {
        for (std::uint32_t k = 0; k < 4; ++k)
          if (at + k >= low && at + k < high)
            *reinterpret_cast<std::uint8_t*>(at + k) = static_cast<std::uint8_t>(word >> (8 * k));
      }
    }
  }
}

__device__ void write_each(const View& view, std::uint32_t row, const Pixels& pixels) {
  const JpegTask& task = view.task;
  for (std::uint32_t i = 0; i < kJpegQuad; ++i) {
    const std::uint32_t x = view.x + i;
    if (x < task.box.left || x >= task.box.left + task.box.width) continue;
    const jpeg::Pixel place = jpeg::upright_place(task.file, {x, view.y[row]});
    std::byte* const target =
        task.pixels + (std::size_t{place.y} * task.file.upright_width() + place.x) * task.channels;
    for (std::uint32_t c = 0; c < task.channels; ++c)
      target[c] = static_cast<std::byte>(pixels.bytes[i * task.channels + c]);
  }
}

__global__ void __launch_bounds__(kThreads) make_pixels(JpegLaunch launch) {
  __shared__ std::uint32_t stages[kJpegStrips][kRows][kWordsOfStrip + 2];
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
  const std::uint32_t x = (task.box.left / kJpegQuad + mine % strips * kLanesOfWarp + lane) * kJpegQuad;
  // Of the first and the last pair, one row may be outside of the box: the other one is made twice.
  const std::uint32_t upper = 2 * pair > task.box.top ? 2 * pair - 1 : 2 * pair;
  const std::uint32_t lower = 2 * pair < task.box.top + task.box.height ? 2 * pair : 2 * pair - 1;
  const bool inside = x < task.box.left + task.box.width;
  const View view{image, task, launch.samples + task.first_line * jpeg::kBlockValues, x, {upper, lower}};
  Quads values[jpeg::kMostComponents];
  const std::uint32_t components = image.layout.components;
  if (inside) {
#pragma unroll
    for (std::uint32_t c = 0; c < jpeg::kMostComponents; ++c)
      if (c < components) upsample(view, c, jpeg::upsampling_of(image.layout, c), values[c]);
  }
  const bool plain = task.channels == 3 && task.file.orientation == 1;
  alignas(4) Pixels pixels[kRows];
  if (inside) {
#pragma unroll
    for (std::uint32_t row = 0; row < kRows; ++row)
#pragma unroll
      for (std::uint32_t i = 0; i < kJpegQuad; ++i) {
        std::uint8_t pixel[jpeg::kMostComponents];
#pragma unroll
        for (std::uint32_t c = 0; c < jpeg::kMostComponents; ++c)
          pixel[c] = c < components ? static_cast<std::uint8_t>(values[c].row[row][i]) : 0;
        jpeg::convert_colour(image.layout.colour, pixel);
        if (task.channels == 3) {
          jpeg::make_rgb(components, pixel);
#pragma unroll
          for (std::uint32_t c = 0; c < 3; ++c) pixels[row].bytes[i * 3 + c] = pixel[c];
        } else if (task.channels == 1) {
          pixels[row].bytes[i] = pixel[0];
        } else {
#pragma unroll
          for (std::uint32_t c = 0; c < 4; ++c) pixels[row].bytes[i * 4 + c] = pixel[c];
        }
      }
  }
  if (plain) {
    std::uint32_t words[kRows][3];
#pragma unroll
    for (std::uint32_t row = 0; row < kRows; ++row)
#pragma unroll
      for (std::uint32_t i = 0; i < 3; ++i)
        words[row][i] = reinterpret_cast<const std::uint32_t*>(pixels[row].bytes)[i];
    write_strip(view, words, stages[warp]);
  } else if (inside) {
    write_each(view, 0, pixels[0]);
    if (lower != upper) write_each(view, 1, pixels[1]);
  }
}

}  // namespace

void launch_jpeg_pixels(const JpegLaunch& launch, cudaStream_t stream) {
  make_pixels<<<launch.pixels.count, kThreads, 0, stream>>>(launch);
}

}  // namespace shard::gpu
