#include "setup/likely_targets.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace shard {

namespace {

using Words = std::vector<std::string>;
using Row = std::vector<std::uint64_t>;

constexpr std::array<std::string_view, 20> kBoxWords{
    "box", "boxes", "bbox", "bboxes", "bndbox", "bounding", "rect", "rects", "rectangle", "rectangles",
    "roi", "rois",  "xyxy", "xywh",   "cxcywh", "ltrb",     "tlbr", "ltwh",  "obb",       "quad"};
constexpr std::array<std::string_view, 39> kPointWords{
    "keypoint",  "keypoints", "kpt",       "kpts",     "kps",       "landmark", "landmarks",  "joint",
    "joints",    "point",     "points",    "polygon",  "polygons",  "poly",     "polys",      "polyline",
    "polylines", "contour",   "contours",  "corner",   "corners",   "vertices", "skeleton",   "centroid",
    "center",    "centre",    "centers",   "centres",  "coord",     "coords",   "coordinate", "coordinates",
    "xy",        "location",  "locations", "position", "positions", "pose",     "poses"};
constexpr std::array<std::string_view, 17> kMaskWords{
    "mask",    "masks",    "segmentation", "segmentations", "segm",      "seg",
    "semseg",  "semantic", "panoptic",     "depth",         "disparity", "flow",
    "heatmap", "heatmaps", "saliency",     "matte",         "rle"};
// Of a name with one of them: what is said about a place, or the masks of other things.
constexpr std::array<std::string_view, 55> kOtherWords{
    "label",     "labels",     "class",      "classes",  "category",  "categories", "id",      "ids",
    "score",     "scores",     "confidence", "conf",     "area",      "areas",      "count",   "counts",
    "crowd",     "iscrowd",    "name",       "names",    "index",     "weight",     "weights", "valid",
    "visible",   "visibility", "difficult",  "occluded", "truncated", "path",       "file",    "url",
    "attention", "padding",    "pad",        "token",    "tokens",    "text",       "loss",    "embedding",
    "type",      "prob",       "probs",      "logits",   "quat",      "quaternion", "rgb",     "rgba",
    "color",     "colour",     "tag",        "tags",     "attribute", "attributes", "attrs"};

template <std::size_t N>
bool has_word(const Words& words, const std::array<std::string_view, N>& list) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return std::find(list.begin(), list.end(), word) != list.end();
  });
}

// "leftEye_kpts2" -> left, eye, kpts
Words words_of(std::string_view name) {
  Words words;
  bool inside = false;
  bool lower = false;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalpha(byte) == 0) {
      inside = false;
      continue;
    }
    const bool upper = std::isupper(byte) != 0;
    if (!inside || (upper && lower)) words.emplace_back();
    words.back() += static_cast<char>(std::tolower(byte));
    inside = true;
    lower = !upper;
  }
  return words;
}

bool has_size_of(const Row& row, const SampleSpec& sample) {
  if (sample.height < 2 || sample.width < 2) return false;
  for (std::size_t i = 0; i + 1 < row.size(); ++i)
    if (row[i] == sample.height && row[i + 1] == sample.width) return true;
  return false;
}

std::optional<Likeness> by_shape(const ColumnSpec& column, const SampleSpec& sample) {
  const Row& row = column.row_shape;
  const bool ragged = column.kind == ColumnKind::ragged;
  if (has_size_of(row, sample)) return Likeness::masks;
  if (row.empty() || row.size() > 2) return std::nullopt;
  if (!ragged && has_word(words_of(column.name), kOtherWords)) return std::nullopt;
  const bool small = column.dtype == DType::boolean || column.dtype == DType::u8 || column.dtype == DType::i8;
  if (!ragged && row.size() == 1 && small) return std::nullopt;
  const std::uint64_t last = row.back();
  if (last == 4 || (ragged && row.size() == 1 && (last == 5 || last == 6 || last == 8)))
    return Likeness::boxes;
  const bool a_point = last == 2 && is_floating(column.dtype);
  if ((last == 2 || last == 3) && (ragged || row.size() == 2 || a_point)) return Likeness::points;
  return std::nullopt;
}

std::optional<Likeness> by_name(const ColumnSpec& column) {
  const Words words = words_of(column.name);
  if (has_word(words, kOtherWords)) return std::nullopt;
  if (has_word(words, kBoxWords)) return Likeness::boxes;
  if (has_word(words, kPointWords)) return Likeness::points;
  if (has_word(words, kMaskWords)) return Likeness::masks;
  return std::nullopt;
}

bool is_number(const ColumnSpec& column) {
  return column.kind == ColumnKind::fixed && column.row_shape.empty();
}

// The name of the other coordinate: "nose_x" -> "nose_y", "xmin" -> "ymin", "left" -> "top".
// Empty: it is no coordinate.
std::string other_coordinate(const std::string& name) {
  constexpr std::array<std::string_view, 9> kX{"x",    "cx",   "xc",      "xmin", "xmax",
                                               "minx", "maxx", "xcenter", "left"};
  constexpr std::array<std::string_view, 9> kY{"y",    "cy",   "yc",      "ymin", "ymax",
                                               "miny", "maxy", "ycenter", "top"};
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto letter = [&](std::size_t at) {
    return at < lower.size() && std::isalpha(static_cast<unsigned char>(lower[at])) != 0;
  };
  for (std::size_t i = 0; i < lower.size(); ++i) {
    if (!letter(i) || (i > 0 && letter(i - 1))) continue;
    std::size_t end = i;
    while (letter(end)) ++end;
    const auto word = std::find(kX.begin(), kX.end(), std::string_view(lower).substr(i, end - i));
    if (word == kX.end()) continue;
    return lower.substr(0, i) + std::string(kY[static_cast<std::size_t>(word - kX.begin())]) +
           lower.substr(end);
  }
  return {};
}

bool same_letters(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

// Another single number whose name differs in x and y only.
bool is_coordinate(const std::vector<ColumnSpec>& columns, std::size_t number) {
  const auto pair_of = [&](const std::string& name) { return other_coordinate(name); };
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i == number || !is_number(columns[i]) || columns[i].name == "labels") continue;
    const std::string from_mine = pair_of(columns[number].name);
    const std::string from_other = pair_of(columns[i].name);
    if ((!from_mine.empty() && same_letters(from_mine, columns[i].name)) ||
        (!from_other.empty() && same_letters(from_other, columns[number].name)))
      return true;
  }
  return false;
}

}  // namespace

std::string_view to_string(Likeness likeness) noexcept {
  switch (likeness) {
    case Likeness::boxes:
      return "boxes";
    case Likeness::points:
      return "points";
    case Likeness::masks:
      return "masks";
  }
  return "targets";
}

std::optional<Likeness> looks_like(const std::vector<ColumnSpec>& columns, std::size_t number,
                                   const SampleSpec& sample) {
  const ColumnSpec& column = columns[number];
  if (column.name == "labels") return std::nullopt;
  if (column.kind == ColumnKind::text) {  // of text, only what it is called says what it is
    const Words words = words_of(column.name);
    return words.size() == 1 ? by_name(column) : std::nullopt;
  }
  if (is_number(column))
    return is_coordinate(columns, number) ? std::optional(Likeness::points) : std::nullopt;
  if (const auto like = by_shape(column, sample)) return like;
  const bool one =
      column.kind == ColumnKind::fixed &&
      std::all_of(column.row_shape.begin(), column.row_shape.end(), [](auto axis) { return axis == 1; });
  return one ? std::nullopt : by_name(column);
}

}  // namespace shard
