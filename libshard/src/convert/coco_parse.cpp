#include "convert/coco_parse.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.hpp"
#include "base/file_io.hpp"
#include "base/json.hpp"
#include "base/mapped_file.hpp"
#include "base/quote.hpp"
#include "shard/error.hpp"

namespace shard::convert {

namespace {

[[noreturn]] void refuse_coco(const std::string& why) { throw Error(ErrorCode::invalid_argument, why); }

enum class Section : std::uint8_t { other, images, annotations, categories };

// The members of entries that are read. Everything else is passed over.
enum class Field : std::uint8_t {
  other,
  id,
  file_name,
  width,
  height,
  name,
  image_id,
  category_id,
  bbox,
  area,
  iscrowd,
  keypoints,
  caption
};

struct FieldRule {
  Section section;
  std::string_view name;
  Field field;
  std::string_view wanted;
};
constexpr FieldRule kFieldRules[] = {
    {Section::images, "id", Field::id, "a whole number"},
    {Section::images, "file_name", Field::file_name, "text"},
    {Section::images, "width", Field::width, "a whole number"},
    {Section::images, "height", Field::height, "a whole number"},
    {Section::categories, "id", Field::id, "a whole number"},
    {Section::categories, "name", Field::name, "text"},
    {Section::annotations, "id", Field::id, "a whole number, or not be there"},
    {Section::annotations, "image_id", Field::image_id, "a whole number"},
    {Section::annotations, "category_id", Field::category_id, "a whole number"},
    {Section::annotations, "bbox", Field::bbox, "a list of 4 numbers, or not be there"},
    {Section::annotations, "area", Field::area, "a number, or not be there"},
    {Section::annotations, "iscrowd", Field::iscrowd, "0 or 1, or not be there"},
    {Section::annotations, "keypoints", Field::keypoints, "a list of numbers, or not be there"},
    {Section::annotations, "caption", Field::caption, "text, or not be there"},
};

Field field_of(Section section, std::string_view name) {
  for (const FieldRule& rule : kFieldRules)
    if (rule.section == section && rule.name == name) return rule.field;
  return Field::other;
}

const FieldRule& rule_of(Section section, Field field) {
  for (const FieldRule& rule : kFieldRules)
    if (rule.section == section && rule.field == field) return rule;
  throw Error(ErrorCode::invalid_argument, "no such member");
}

// 3.0 and 3e2 are whole numbers too.
std::optional<std::int64_t> whole_number(double value) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (value != std::floor(value) || std::abs(value) > kExact) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

// Depth 1 is the document, 2 the list of a section, 3 an entry of it, 4 a list in the entry. A member that is read has its type, or the file is
// refused: a number that is text, or null, is not taken for one that is missing.
class CocoBuilder final : public JsonHandler {
 public:
  Coco coco;
  std::vector<std::int64_t> annotation_ids;

  void null() override { take_other("null"); }
  void boolean(bool value) override {
    if (depth_ == 3 && field_ == Field::iscrowd)
      annotation().crowd = value;
    else
      take_other(value ? "true" : "false");
  }
  void unsigned_integer(std::uint64_t value) override {
    if (value <= std::uint64_t{std::numeric_limits<std::int64_t>::max()})
      take_number(static_cast<double>(value), static_cast<std::int64_t>(value), {});
    else
      take_number(static_cast<double>(value), std::nullopt, std::to_string(value));
  }
  void other_number(std::string_view text) override {
    std::int64_t whole = 0;
    const char* const end = text.data() + text.size();
    if (const auto [last, error] = std::from_chars(text.data(), end, whole);
        error == std::errc{} && last == end)
      return take_number(static_cast<double>(whole), whole, text);
    double value = 0;
    if (const auto [last, error] = std::from_chars(text.data(), end, value);
        error != std::errc{} || last != end)
      refuse_coco(fmt::format("{} is not a number of float64", text));
    take_number(value, whole_number(value), text);
  }
  void string(std::string&& value) override {
    if (depth_ == 3 && field_ == Field::file_name) {
      coco.images.back().file_name = std::move(value);
    } else if (depth_ == 3 && field_ == Field::name) {
      coco.categories.back().name = std::move(value);
    } else if (depth_ == 3 && field_ == Field::caption) {
      coco.captions.push_back(std::move(value));
      annotation().caption = static_cast<std::uint32_t>(coco.captions.size());
    } else {
      take_other(quoted_excerpt(value));
    }
  }
  void begin_object() override {
    if (depth_ != 2) take_other("an object");
    ++depth_;
    if (depth_ != 3 || section_ == Section::other) return;
    seen_fields_ = 0;
    field_ = Field::other;
    if (section_ == Section::images) coco.images.emplace_back();
    if (section_ == Section::categories) coco.categories.emplace_back();
    if (section_ == Section::annotations) coco.annotations.emplace_back();
  }
  void key(std::string&& name) override {
    if (depth_ == 1) {
      section_ = name == "images"        ? Section::images
                 : name == "annotations" ? Section::annotations
                 : name == "categories"  ? Section::categories
                                         : Section::other;
      if (section_ != Section::other && std::exchange(seen_[static_cast<int>(section_)], true))
        refuse_coco(fmt::format("it has the list {} twice", name));
    } else if (depth_ == 3) {
      field_ = field_of(section_, name);
      if (field_ == Field::other) return;
      if (has(field_)) refuse_coco(fmt::format("{} has {} twice", entry(), name));
      seen_fields_ |= bit(field_);
    }
  }
  void end_object() override {
    if (depth_ == 3) end_entry();
    --depth_;
  }
  void begin_array() override {
    const bool section = depth_ == 1 && section_ != Section::other;
    const bool numbers = depth_ == 3 && (field_ == Field::bbox || field_ == Field::keypoints);
    if (!section && !numbers) take_other("a list");
    ++depth_;
    if (numbers) numbers_.clear();
  }
  void end_array() override {
    if (depth_ == 4) end_list();
    --depth_;
  }

  void check_sections() const {
    if (!seen_[static_cast<int>(Section::images)] || !seen_[static_cast<int>(Section::annotations)])
      refuse_coco(
          "it has no lists \"images\" and \"annotations\": these are not annotations in the format of COCO");
  }

 private:
  static std::uint32_t bit(Field field) { return std::uint32_t{1} << static_cast<unsigned>(field); }
  bool has(Field field) const { return (seen_fields_ & bit(field)) != 0; }
  CocoAnnotation& annotation() { return coco.annotations.back(); }

  // "annotation 17", or by its place where its id is not known yet.
  std::string entry() const {
    const auto named = [&](const char* what, const char* list, std::int64_t id, std::size_t count) {
      return has(Field::id) && id_is_read_ ? fmt::format("{} {}", what, id)
                                           : fmt::format("{}[{}]", list, count - 1);
    };
    if (section_ == Section::images)
      return named("image", "images", coco.images.back().id, coco.images.size());
    if (section_ == Section::categories)
      return named("category", "categories", coco.categories.back().id, coco.categories.size());
    return named("annotation", "annotations", coco.annotations.back().id, coco.annotations.size());
  }

  // A value that no member which is read can have here.
  void take_other(std::string_view found) const {
    if (section_ == Section::other) return;
    if (depth_ == 1) refuse_coco("its images, annotations and categories must be lists");
    if (depth_ == 2)
      refuse_coco(fmt::format("an entry of its images, annotations or categories is {}: it must be an object",
                              found));
    if (field_ == Field::other) return;
    const FieldRule& rule = rule_of(section_, field_);
    if (depth_ > 3)
      refuse_coco(fmt::format("{}: {} has {} in it: it must be {}", entry(), rule.name, found, rule.wanted));
    refuse_coco(fmt::format("{}: {} is {}: it must be {}", entry(), rule.name, found, rule.wanted));
  }

  // `text`: as it is written, or empty.
  void take_number(double value, std::optional<std::int64_t> whole, std::string_view text) {
    if (section_ == Section::other || (depth_ >= 3 && field_ == Field::other)) return;
    const std::string written = text.empty() ? fmt::to_string(*whole) : std::string(text);
    const bool in_list = field_ == Field::bbox || field_ == Field::keypoints;
    const bool is_text = field_ == Field::file_name || field_ == Field::name || field_ == Field::caption;
    if (depth_ < 3 || is_text || in_list != (depth_ == 4) || std::abs(value) > kMost) take_other(written);
    if (in_list) return numbers_.push_back(value);
    if (field_ == Field::area) {
      annotation().area = value;
      annotation().has_area = true;
      return;
    }
    if (!whole || (field_ == Field::iscrowd && *whole != 0 && *whole != 1)) take_other(written);
    take_integer(*whole);
  }

  void take_integer(std::int64_t value) {
    const auto side = [&] {
      constexpr std::int64_t kMostPixels = 6'553'500;
      if (value < 1 || value > kMostPixels)
        refuse_coco(fmt::format("{} has a {} of {}", entry(), rule_of(section_, field_).name, value));
      return static_cast<std::uint32_t>(value);
    };
    switch (field_) {
      case Field::id:
        id_is_read_ = true;
        if (section_ == Section::images) coco.images.back().id = value;
        if (section_ == Section::categories) coco.categories.back().id = value;
        if (section_ == Section::annotations) annotation_ids.push_back(annotation().id = value);
        break;
      case Field::width:
        coco.images.back().width = side();
        break;
      case Field::height:
        coco.images.back().height = side();
        break;
      case Field::image_id:
        annotation().image = value;
        break;
      case Field::category_id:
        annotation().category = value;
        break;
      case Field::iscrowd:
        annotation().crowd = value != 0;
        break;
      default:
        break;
    }
  }

  void end_list() {
    if (section_ != Section::annotations) return;
    CocoAnnotation& of = annotation();
    if (field_ == Field::bbox) {
      if (numbers_.size() != 4)
        refuse_coco(fmt::format("{}: a bbox of {} numbers: it must be x, y, width, height", entry(),
                                numbers_.size()));
      std::copy(numbers_.begin(), numbers_.end(), of.box);
      of.has_box = true;
    } else if (field_ == Field::keypoints) {
      if (numbers_.size() % 3 != 0)
        refuse_coco(
            fmt::format("{}: keypoints of {} numbers: a multiple of 3 is needed", entry(), numbers_.size()));
      for (std::size_t at = 2; at < numbers_.size(); at += 3)
        if (numbers_[at] != 0 && numbers_[at] != 1 && numbers_[at] != 2)
          refuse_coco(fmt::format("{}: keypoints have a visibility of {}: it must be 0, 1 or 2", entry(),
                                  numbers_[at]));
      of.keypoints_begin = coco.keypoints.size();
      of.keypoints = static_cast<std::uint32_t>(numbers_.size());
      for (const double value : numbers_) coco.keypoints.push_back(static_cast<float>(value));
    }
  }

  void end_entry() {
    if (section_ == Section::other) return;
    const bool annotates = section_ == Section::annotations;
    if (!has(Field::id) && !annotates)
      refuse_coco(fmt::format("an entry of {} has no whole number as id",
                              section_ == Section::images ? "images" : "categories"));
    if (section_ == Section::images && coco.images.back().file_name.empty())
      refuse_coco(fmt::format("{} has no file_name", entry()));
    if (section_ == Section::categories && coco.categories.back().name.empty())
      refuse_coco(fmt::format("{} has no name", entry()));
    if (annotates && !has(Field::image_id))
      refuse_coco(fmt::format("{} has no whole number as image_id", entry()));
    if (annotates && !has(Field::category_id) && (annotation().has_box || annotation().keypoints != 0))
      refuse_coco(fmt::format("{} has no whole number as category_id", entry()));
    field_ = Field::other;
    id_is_read_ = false;
  }

  static constexpr double kMost = 1e30;  // float32 holds it

  std::size_t depth_ = 0;
  Section section_ = Section::other;
  bool seen_[4] = {};
  Field field_ = Field::other;
  std::uint32_t seen_fields_ = 0;  // of the entry
  bool id_is_read_ = false;
  std::vector<double> numbers_;  // of the list that is being read
};

template <class Entries>
void sort_unique(Entries& entries, const char* what) {
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  const auto twice = std::adjacent_find(entries.begin(), entries.end(),
                                        [](const auto& a, const auto& b) { return a.id == b.id; });
  if (twice != entries.end()) refuse_coco(fmt::format("two {} have the id {}", what, twice->id));
}

}  // namespace

Coco parse_coco(std::string_view text) {
  CocoBuilder built;
  parse_json(text, built, "it");
  built.check_sections();
  sort_unique(built.coco.images, "images");
  sort_unique(built.coco.categories, "categories");
  std::sort(built.annotation_ids.begin(), built.annotation_ids.end());
  if (const auto twice = std::adjacent_find(built.annotation_ids.begin(), built.annotation_ids.end());
      twice != built.annotation_ids.end())
    refuse_coco(fmt::format("two annotations have the id {}", *twice));
  std::stable_sort(built.coco.annotations.begin(), built.coco.annotations.end(),
                   [](const auto& a, const auto& b) { return a.image < b.image; });
  return std::move(built.coco);
}

Coco read_coco(const std::filesystem::path& path) {
  const UniqueFd fd = open_read(path);
  const std::uint64_t size = regular_file_size(fd.get(), path);
  const std::string file = quoted(path);
  if (size == 0)
    refuse_coco(fmt::format("{} is empty: annotations in the format of COCO are expected", file));
  const MappedFile mapped(fd.get(), size, path);
  try {
    return parse_coco(as_text(mapped.bytes()));
  } catch (const Error& error) {
    refuse_coco(fmt::format("{}: {}", file, error.what()));
  }
}

}  // namespace shard::convert
