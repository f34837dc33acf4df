// A small data set of samples of any size, and what a view of one must be, by plain loops.
#pragma once

#include <cmath>
#include <cstring>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "support/loader/loader_fixture.hpp"

namespace shard::testing {

struct FreeShape {
  std::vector<std::uint64_t> shards{23, 17};
  SampleSpec spec{DType::u8, Layout::nhwc, 3, 0, 0};
  CodecSpec codec;
  std::vector<FieldSpec> fields{};
};

// Rows and columns of sample `index`: thumbnails, long ones, and each seventh a large one.
inline SampleSize free_size(std::uint64_t index) {
  const auto i = static_cast<std::uint32_t>(index);
  if (i % 7 == 3) return {90 + i, 120 + 3 * i};
  if (i % 11 == 5) return {3, 100 + i};
  return {1 + i * 13 % 40, 1 + i * 29 % 50};
}

inline Normalization plain_normalization(std::uint32_t channels) {
  const std::size_t count = std::max(channels, 3U);
  return {std::vector<float>(count, 0.0F), std::vector<float>(count, 1.0F)};
}

// The field of a sample: values of which some tens are different, floats between 0 and 1.
inline std::vector<std::byte> free_field(const FieldSpec& field, std::uint64_t index) {
  const SampleSize size = free_size(index);
  const SampleSpec sized = field.spec.sized(size.height, size.width);
  const std::vector<std::byte> raw = sample_bytes(index + 1000 * field.name.size(), sized.elements());
  std::vector<std::byte> bytes(sized.size_bytes());
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const auto value = static_cast<std::uint32_t>((i / 7 + std::to_integer<std::size_t>(raw[i]) % 8) % 64);
    const float number = static_cast<float>(value) / 64;
    const auto u16 = static_cast<std::uint16_t>(value * 1000);
    const std::uint16_t f16 = f32_to_f16(number);
    if (sized.dtype == DType::u8) bytes[i] = static_cast<std::byte>(value);
    if (sized.dtype == DType::u16) std::memcpy(&bytes[2 * i], &u16, 2);
    if (sized.dtype == DType::f16) std::memcpy(&bytes[2 * i], &f16, 2);
    const std::uint16_t bf16 = f32_to_bf16(number);
    if (sized.dtype == DType::bf16) std::memcpy(&bytes[2 * i], &bf16, 2);
    if (sized.dtype == DType::f32) std::memcpy(&bytes[4 * i], &number, 4);
  }
  return bytes;
}

// Smooth, so that packing pays, but for each fifth sample, which is noise. Not u8: like a field.
inline std::vector<std::byte> free_sample(const SampleSpec& spec, std::uint64_t index) {
  if (spec.dtype != DType::u8) return free_field({"images", FieldRole::image, spec, {}, {}}, index);
  const SampleSize size = free_size(index);
  const SampleSpec sized = spec.sized(size.height, size.width);
  std::vector<std::byte> bytes = sample_bytes(index, sized.size_bytes());
  if (index % 5 != 0)
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<std::byte>((i / 3 + std::to_integer<std::size_t>(bytes[i]) % 8) % 256);
  return bytes;
}

// Label of sample i: 1000 + i.
inline void write_free_dataset(const std::filesystem::path& folder, const FreeShape& shape) {
  DatasetInfo info;
  info.spec = shape.spec;
  info.normalization = kNormalization;
  if (shape.spec.channels != 3 || shape.spec.dtype != DType::u8)
    info.normalization = plain_normalization(shape.spec.channels);
  info.codec = shape.codec;
  info.fields = shape.fields;
  info.fingerprint = info.source_digest = "0123456789abcdef";
  const ShardWriterOptions options{info};
  std::uint64_t index = 0;
  for (const std::uint64_t count : shape.shards) {
    ShardWriter writer = ShardWriter::create(
        folder / ("shard-" + std::to_string(info.shards.size()) + ".safetensors"), count, options);
    for (std::uint64_t i = 0; i < count; ++i, ++index) {
      const std::uint64_t label = 1000 + index;
      std::vector<std::byte> row(8);
      std::memcpy(row.data(), &label, 8);
      const SampleSize size = free_size(index);
      const std::vector<std::byte> bytes = free_sample(shape.spec, index);
      std::vector<std::vector<std::byte>> fields;
      for (const FieldSpec& field : shape.fields) fields.push_back(free_field(field, index));
      std::vector<SampleValues> values;
      for (const auto& field : fields) values.emplace_back(field, size.height, size.width);
      const std::vector<std::span<const std::byte>> rows{row};
      writer.put(i, "k" + std::to_string(index), rows, SampleValues(bytes, size.height, size.width), values);
    }
    info.shards.push_back(writer.publish());
  }
  info.inputs = index;
  publish_file(folder / kDatasetFile, serialize_dataset(info));
}

// Pillow's resize of one axis of `count` lines, written down once more: value(line, i) are the source pixels
// of a line.
template <class Value>
std::vector<std::uint8_t> plain_resize(ResizeFilter filter, std::uint32_t lines, std::uint32_t box,
                                       std::uint32_t out, const Value& value) {
  const auto weight_at = [filter](double x) {
    x = std::abs(x);
    if (filter == ResizeFilter::bilinear) return x < 1 ? 1 - x : 0.0;
    if (filter == ResizeFilter::lanczos) {
      const auto sinc = [](double at) {
        return at == 0 ? 1.0 : std::sin(at * std::numbers::pi) / (at * std::numbers::pi);
      };
      return x < 3 ? sinc(x) * sinc(x / 3) : 0.0;
    }
    if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * -0.5 : 0.0;
  };
  const double scale = static_cast<double>(box) / out;
  const double shrink = std::max(scale, 1.0);
  constexpr double kSupports[] = {1, 2, 0.5, 3};
  const double support = kSupports[static_cast<std::size_t>(filter)] * shrink;
  std::vector<std::uint8_t> result(std::size_t{lines} * out);
  for (std::uint32_t x = 0; x < out; ++x) {
    const double center = (x + 0.5) * scale;
    const int first = std::max(static_cast<int>(center - support + 0.5), 0);
    const int end = std::min(static_cast<int>(center + support + 0.5), static_cast<int>(box));
    std::vector<double> weights;
    double sum = 0;
    for (int i = first; i < end; ++i) {
      const double at = (i - center + 0.5) * (1.0 / shrink);
      weights.push_back(filter == ResizeFilter::box ? (at > -0.5 && at <= 0.5 ? 1.0 : 0.0) : weight_at(at));
      sum += weights.back();
    }
    std::vector<int> fixed;
    for (double& weight : weights) {
      const double scaled = weight / sum * (1 << 22);
      fixed.push_back(static_cast<int>(scaled < 0 ? scaled - 0.5 : scaled + 0.5));
    }
    for (std::uint32_t line = 0; line < lines; ++line) {
      int total = 1 << 21;
      for (int i = first; i < end; ++i)
        total += fixed[static_cast<std::size_t>(i - first)] * value(line, static_cast<std::uint32_t>(i));
      result[std::size_t{line} * out + x] = static_cast<std::uint8_t>(std::clamp(total >> 22, 0, 255));
    }
  }
  return result;
}

// A view of a u8 sample, [channel][row][column].
inline std::vector<std::uint8_t> plain_view(const SampleSpec& sized, const std::vector<std::byte>& sample,
                                            const SampleCrop& crop, std::uint32_t height, std::uint32_t width,
                                            ResizeFilter filter, const std::vector<std::uint8_t>& fill) {
  const std::uint32_t rows = crop.resized_height != 0 ? crop.resized_height : height;
  const std::uint32_t columns = crop.resized_width != 0 ? crop.resized_width : width;
  std::vector<std::uint8_t> view;
  for (std::uint32_t c = 0; c < sized.channels; ++c) {
    const auto pixel = [&](std::uint32_t y, std::uint32_t x) -> int {
      const std::size_t at =
          sized.layout == Layout::nhwc
              ? (std::size_t{crop.top + y} * sized.width + crop.left + x) * sized.channels + c
              : (std::size_t{c} * sized.height + crop.top + y) * sized.width + crop.left + x;
      return std::to_integer<int>(sample[at]);
    };
    const auto across = plain_resize(filter, crop.height, crop.width, columns, pixel);
    const auto down = plain_resize(filter, columns, crop.height, rows, [&](std::uint32_t x, std::uint32_t y) {
      return int{across[std::size_t{y} * columns + x]};
    });
    for (std::uint32_t y = 0; y < height; ++y)
      for (std::uint32_t x = 0; x < width; ++x) {
        const std::int64_t row = std::int64_t{y} - crop.row;
        const std::int64_t column = std::int64_t{crop.flip ? width - 1 - x : x} - crop.column;
        const bool inside = row >= 0 && row < rows && column >= 0 && column < columns;
        const std::uint8_t around = fill.empty() ? std::uint8_t{0} : fill[fill.size() == 1 ? 0 : c];
        view.push_back(inside ? down[static_cast<std::size_t>(column) * rows + static_cast<std::size_t>(row)]
                              : around);
      }
  }
  return view;
}

// Each way of making one size of any.
inline std::vector<std::pair<std::string, TransformOptions>> views_of_any_size() {
  TransformOptions plain;
  plain.flip = 0.5;
  plain.layout = Layout::nchw;
  std::vector<std::pair<std::string, TransformOptions>> views;
  const auto add = [&](const std::string& name, ResizeKind resize, std::uint32_t to_height,
                       std::uint32_t to_width, CropKind crop, std::uint32_t height, std::uint32_t width) {
    TransformOptions view = plain;
    view.resize = resize;
    view.resize_height = to_height;
    view.resize_width = to_width;
    view.crop = crop;
    view.crop_height = height;
    view.crop_width = width;
    views.emplace_back(name, view);
  };
  add("random_resized", ResizeKind::none, 0, 0, CropKind::random_resized, 16, 20);
  add("center", ResizeKind::none, 0, 0, CropKind::center, 30, 24);
  add("random", ResizeKind::none, 0, 0, CropKind::random, 17, 33);
  add("shortest, center", ResizeKind::shortest, 20, 20, CropKind::center, 16, 18);
  add("longest, random", ResizeKind::longest, 24, 24, CropKind::random, 16, 22);
  add("squash", ResizeKind::squash, 13, 21, CropKind::none, 0, 0);
  add("letterbox", ResizeKind::letterbox, 40, 28, CropKind::none, 0, 0);
  views.back().second.fill = {114, 7, 200};
  add("cover", ResizeKind::cover, 26, 31, CropKind::none, 0, 0);
  add("cover, random", ResizeKind::cover, 26, 31, CropKind::random, 26, 31);
  const std::size_t bilinear = views.size();
  for (std::size_t i = 0; i < bilinear; ++i) {
    auto [name, view] = views[i];
    view.filter = i % 2 == 0 ? ResizeFilter::bicubic : i % 4 == 1 ? ResizeFilter::box : ResizeFilter::lanczos;
    views.emplace_back(
        name + ", " + std::string(words_of(view.filter)[static_cast<std::size_t>(view.filter)]), view);
  }
  return views;
}

}  // namespace shard::testing
