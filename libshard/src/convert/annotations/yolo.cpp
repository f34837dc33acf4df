#include <fmt/format.h>

#include <cmath>

#include "base/text/number.hpp"
#include "base/text/quote.hpp"
#include "base/text/utf8.hpp"
#include "convert/annotations/label_file.hpp"
#include "shard/error.hpp"

namespace shard::convert {

namespace {

// What programs write of a box that touches the border.
constexpr double kBeyond = 0.01;

class YoloLine {
 public:
  YoloLine(std::string_view line, std::size_t number) : rest_(line), number_(number) {}

  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorCode::corrupt, fmt::format("line {}: {}", number_, why));
  }

  // Throws if there is a word that is not a finite number.
  std::vector<double> numbers() {
    std::vector<double> values;
    for (std::string_view word = next(); !word.empty(); word = next()) {
      const auto value = number_of<double>(word);
      if (!value || !std::isfinite(*value))
        refuse(fmt::format("{} is not a finite number", quoted_excerpt(word)));
      values.push_back(*value);
    }
    return values;
  }

  std::int64_t label(double value) const {
    constexpr double kMost = 1e9;
    if (value < 0 || value > kMost || value != std::floor(value))
      refuse(fmt::format("class {}: a whole number from 0 on is needed", value));
    return static_cast<std::int64_t>(value);
  }
  double fraction(const char* name, double value) const {
    if (value < -kBeyond || value > 1 + kBeyond)
      refuse(fmt::format("{} is {}: a fraction of the image, 0 to 1, is needed", name, value));
    return value;
  }

 private:
  std::string_view next() {
    constexpr std::string_view kBlank = " \t";
    const std::size_t begin = std::min(rest_.find_first_not_of(kBlank), rest_.size());
    const std::size_t end = std::min(rest_.find_first_of(kBlank, begin), rest_.size());
    const std::string_view word = rest_.substr(begin, end - begin);
    rest_.remove_prefix(end);
    return word;
  }

  std::string_view rest_;
  std::size_t number_;
};

void check_count(const YoloLine& line, std::size_t count, std::uint32_t keypoints) {
  if (count == 5 + std::size_t{2} * keypoints || count == 5 + std::size_t{3} * keypoints) return;
  if (keypoints != 0)
    line.refuse(fmt::format("{} numbers: {} or {} are needed for {} keypoints (`yolo_keypoints`)", count,
                            5 + 2 * keypoints, 5 + 3 * keypoints, keypoints));
  line.refuse(fmt::format("{} numbers: 5 are needed, class cx cy w h{}", count,
                          count >= 7 && count % 2 == 1
                              ? " (polygons of segmentations are not read; keypoints need `yolo_keypoints`)"
                              : ""));
}

LabelledObject object_of(const YoloLine& line, const std::vector<double>& values, std::uint32_t keypoints) {
  LabelledObject found;
  found.object.label = line.label(values[0]);
  const double x = line.fraction("cx", values[1]);
  const double y = line.fraction("cy", values[2]);
  const double half_width = line.fraction("w", values[3]) / 2;
  const double half_height = line.fraction("h", values[4]) / 2;
  found.object.box = {x - half_width, y - half_height, x + half_width, y + half_height};
  const bool visibility = values.size() == 5 + std::size_t{3} * keypoints;
  for (std::size_t at = 5; at < values.size(); at += visibility ? 3 : 2) {
    found.keypoints.push_back(static_cast<float>(line.fraction("x of a keypoint", values[at])));
    found.keypoints.push_back(static_cast<float>(line.fraction("y of a keypoint", values[at + 1])));
    if (visibility && values[at + 2] != 0 && values[at + 2] != 1 && values[at + 2] != 2)
      line.refuse(fmt::format("the visibility of a keypoint is {}: 0, 1 or 2 is needed", values[at + 2]));
    // Without visibility, 0 0 is a point that is not labelled.
    const bool labelled = values[at] != 0 || values[at + 1] != 0;
    found.keypoints.push_back(visibility ? static_cast<float>(values[at + 2]) : labelled ? 2.0F : 0.0F);
  }
  return found;
}

}  // namespace

LabelFile parse_yolo(std::string_view text, std::uint32_t keypoints) {
  LabelFile file;
  text = without_byte_order_mark(text);
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view words = text.substr(0, end);
    if (words.ends_with('\r')) words.remove_suffix(1);
    YoloLine line(words, ++number);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::vector<double> values = line.numbers();
    if (values.empty()) continue;
    check_count(line, values.size(), keypoints);
    LabelledObject found = object_of(line, values, keypoints);
    const auto& [left, top, right, bottom] = found.object.box;
    if (left < right && top < bottom) {
      file.objects.push_back(std::move(found));
    } else if (file.invalid_boxes.number++ == 0) {
      file.invalid_boxes.first = fmt::format("line {}: a box of {} x {}", number, values[3], values[4]);
    }
  }
  return file;
}

}  // namespace shard::convert
