#include "shardctl/draw/overlay.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "shard/dtype.hpp"
#include "shardctl/dataset/json_text.hpp"
#include "shardctl/draw/pixels.hpp"

namespace shard::ctl {
namespace {

// Pascal VOC's: the bits of the number, three at a time, are the highest bits of red, green and blue.
Color color_of(std::uint64_t number) {
  Color color{};
  for (unsigned bit = 8; bit-- > 0 && number != 0; number >>= 3U)
    for (unsigned channel = 0; channel < 3; ++channel)
      color[channel] = static_cast<std::uint8_t>(color[channel] | ((number >> channel & 1U) << bit));
  return color;
}

// A picture with clipping.
class Brush {
 public:
  Brush(std::span<std::uint8_t> rgb, std::uint32_t width, std::uint32_t height)
      : rgb_(rgb), width_(width), height_(height) {}

  void dot(std::int64_t x, std::int64_t y, const Color& color) {
    if (x < 0 || y < 0 || x >= width_ || y >= height_) return;
    std::copy(color.begin(), color.end(), rgb_.begin() + 3 * (y * width_ + x));
  }
  // The border of the pixels that the box covers, `thick` pixels wide to the inside.
  void frame(std::int64_t left, std::int64_t top, std::int64_t right, std::int64_t bottom, std::int64_t thick,
             const Color& color) {
    for (std::int64_t y = top; y < bottom; ++y) {
      const bool edge = y < top + thick || y >= bottom - thick;
      for (std::int64_t x = left; x < right; ++x) {
        if (!edge && x == left + thick) x = std::max(x, right - thick);  // nothing to draw in between
        dot(x, y, color);
      }
    }
  }

 private:
  std::span<std::uint8_t> rgb_;
  std::int64_t width_;
  std::int64_t height_;
};

template <class T>
std::vector<T> values_of(std::span<const std::byte> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

std::vector<std::byte> column_of(const Source::Sample& sample, const std::string& name) {
  std::vector<std::byte> rows;
  sample.reader.read_column(sample.reader.columns().at(name), sample.index, rows);
  return rows;
}

// The names of the classes of boxes, which conversions from annotations record.
std::vector<std::string> categories_of(const DatasetInfo& info) {
  const auto recorded = info.provenance.find("categories");
  if (recorded == info.provenance.end()) return {};
  const Json list = Json::parse(recorded->second, nullptr, false);
  std::vector<std::string> names;
  if (list.is_array())
    for (const Json& name : list) names.push_back(name.is_string() ? name.get<std::string>() : "?");
  return names;
}

// Positions beyond a picture are all the same to it; NaN is the first of them.
std::int64_t pixel_at(float value, bool up) {
  constexpr float kMost = 100'000;
  const float rounded = up ? std::ceil(value) : std::floor(value);
  return rounded >= -kMost ? static_cast<std::int64_t>(std::min(rounded, kMost)) : -100'000;
}

double value_of(const SampleSpec& spec, std::span<const std::byte> sample, std::size_t element) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &sample[element * size_bytes(spec.dtype)], size_bytes(spec.dtype));
  if (spec.dtype == DType::u8 || spec.dtype == DType::u16) return bits;
  return static_cast<double>(value_of_bits(spec.dtype, bits));
}

// Gray from the smallest to the largest value that is not 0, which stands for no value in maps of depth.
void draw_range(const SampleSpec& spec, std::span<const std::byte> sample, std::span<std::uint8_t> rgb) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (std::size_t i = 0; i < spec.elements(); ++i) {
    const double value = value_of(spec, sample, i);
    if (value == 0 || !std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  for (std::size_t i = 0; i < spec.elements(); ++i) {
    const double value = value_of(spec, sample, i);
    double gray = 0;
    if (value != 0 && std::isfinite(value)) gray = high > low ? 32 + 223 * (value - low) / (high - low) : 255;
    std::fill_n(rgb.begin() + static_cast<std::ptrdiff_t>(3 * i), 3,
                static_cast<std::uint8_t>(std::lround(gray)));
  }
}

void draw_mask(const SampleTargets::Mask& mask, const Canvas& canvas) {
  const SampleSpec& spec = mask.spec;
  if (spec.width != canvas.width || spec.height != canvas.height) return;
  for (std::size_t i = 0; i < spec.elements(); ++i) {
    const auto number = static_cast<std::uint64_t>(value_of(spec, mask.values, i));
    if (number == 0) continue;
    const Color color = number == 255 && spec.dtype == DType::u8 ? Color{255, 255, 255} : color_of(number);
    for (std::size_t c = 0; c < 3; ++c)
      canvas.pixels[3 * i + c] = static_cast<std::uint8_t>((canvas.pixels[3 * i + c] + color[c] + 1) / 2);
  }
}

// Whether samples of both may have the same rows and columns.
bool may_fit(const SampleSpec& field, const SampleSpec& main) {
  if (field.is_tensor() || main.is_tensor()) return false;
  return field.is_free() || main.is_free() || (field.width == main.width && field.height == main.height);
}

}  // namespace

Overlay::Overlay(const DatasetInfo& info) : fields_(info.fields), categories_(categories_of(info)) {
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (!may_fit(fields_[i].spec, info.spec)) continue;
    if (fields_[i].role == FieldRole::mask) {
      masks_.push_back(i);
    } else {
      images_.push_back(i);
      names_.push_back(fields_[i].name);
    }
  }
  for (const ColumnSpec& column : info.columns) {
    const bool ragged = column.kind == ColumnKind::ragged;
    if (column.name == "boxes" && ragged && column.dtype == DType::f32 &&
        column.row_shape == std::vector<std::uint64_t>{4})
      boxes_ = column.name;
    if (column.name == "box_labels" && ragged && column.dtype == DType::i64 && column.row_shape.empty())
      labels_ = column.name;
    if (column.name == "keypoints" && ragged && column.dtype == DType::f32 && column.row_shape.size() == 2 &&
        column.row_shape[1] == 3) {
      keypoints_ = column.name;
      points_ = static_cast<std::size_t>(column.row_shape[0]);
    }
  }
}

SampleTargets Overlay::read(const Source& source, std::uint64_t index) const {
  SampleTargets targets;
  for (const std::size_t field : masks_) {
    SampleTargets::Mask& mask = targets.masks.emplace_back();
    mask.spec = source.read(index, mask.values, field);
  }
  const Source::Sample sample = source.locate(index);
  if (!boxes_.empty()) targets.boxes = values_of<float>(column_of(sample, boxes_));
  if (!labels_.empty()) targets.labels = values_of<std::int64_t>(column_of(sample, labels_));
  if (!keypoints_.empty()) targets.keypoints = values_of<float>(column_of(sample, keypoints_));
  return targets;
}

void Overlay::draw(const SampleTargets& targets, const Canvas& canvas, std::uint32_t scale) const {
  for (const SampleTargets::Mask& mask : targets.masks) draw_mask(mask, canvas);
  Brush brush(canvas.pixels, canvas.width, canvas.height);
  const std::int64_t thick = std::int64_t{canvas.width >= 320 ? 2 : 1} * scale;
  const std::vector<float>& boxes = targets.boxes;
  for (std::size_t i = 0; i + 4 <= boxes.size(); i += 4) {
    const std::int64_t label = i / 4 < targets.labels.size() ? targets.labels[i / 4] : 0;
    const Frame box{std::max<std::int64_t>(pixel_at(boxes[i], false), 0),
                    std::max<std::int64_t>(pixel_at(boxes[i + 1], false), 0),
                    std::min<std::int64_t>(pixel_at(boxes[i + 2], true), canvas.width),
                    std::min<std::int64_t>(pixel_at(boxes[i + 3], true), canvas.height)};
    const Color color = color_of(static_cast<std::uint64_t>(label) % 255 + 1);
    brush.frame(box.left, box.top, box.right, box.bottom, thick, color);
    draw_name(canvas, {box.left + thick, box.top + thick, box.right - thick, box.bottom - thick}, label,
              color, scale);
  }
  const std::vector<float>& points = targets.keypoints;
  for (std::size_t i = 0; i + 3 <= points.size(); i += 3) {
    if (points[i + 2] == 0) continue;
    const Color color = color_of(i / 3 % points_ % 255 + 1);
    for (std::int64_t y = -thick; y <= thick; ++y)
      for (std::int64_t x = -thick; x <= thick; ++x)
        brush.dot(pixel_at(points[i], false) + x, pixel_at(points[i + 1], false) + y, color);
  }
}

// On a ground of the box's colour, as much of it as fits into the box.
void Overlay::draw_name(const Canvas& canvas, const Frame& frame, std::int64_t label, const Color& color,
                        std::uint32_t scale) const {
  if (label < 0 || static_cast<std::uint64_t>(label) >= categories_.size()) return;
  constexpr std::int64_t kFewest = 2;                             // characters
  const std::int64_t column = std::int64_t{kGlyphWidth} * scale;  // of a character
  const std::int64_t height = std::int64_t{kGlyphHeight + 1} * scale;
  const std::int64_t most = (frame.right - frame.left - scale) / column;
  if (most < kFewest || frame.bottom - frame.top < height) return;
  const std::string name =
      categories_[static_cast<std::size_t>(label)].substr(0, static_cast<std::size_t>(most));
  const auto width = static_cast<std::int64_t>(name.size()) * column + scale;
  Brush brush(canvas.pixels, canvas.width, canvas.height);
  for (std::int64_t y = frame.top; y < frame.top + height; ++y)
    for (std::int64_t x = frame.left; x < frame.left + width; ++x) brush.dot(x, y, color);
  const bool dark = 3 * color[0] + 6 * color[1] + color[2] < 1280;
  draw_text(canvas, static_cast<std::uint32_t>(frame.left) + scale,
            static_cast<std::uint32_t>(frame.top) + scale, scale, name,
            dark ? Color{255, 255, 255} : Color{});
}

void Overlay::draw_picture(const Source& source, std::uint64_t index, std::size_t picture,
                           Picture& out) const {
  const FieldSpec& field = fields_[images_[picture]];
  std::vector<std::byte> sample;
  const SampleSpec of = source.read(index, sample, images_[picture]);
  out.resize(of);
  if (of.channels == 1)
    draw_range(of, sample, out.rgb);
  else
    Denormalizer(of, field.normalization).rgb(sample, out.rgb);
}

SampleSpec Overlay::picture_spec(const Source& source, std::uint64_t index, std::size_t picture) const {
  return source.spec_of(index, images_[picture]);
}

}  // namespace shard::ctl
