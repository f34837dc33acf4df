#include "convert/annotations/coco_parse.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.hpp"
#include "base/files/file_io.hpp"
#include "base/files/mapped_file.hpp"
#include "base/text/json.hpp"
#include "base/text/number.hpp"
#include "base/text/quote.hpp"
#include "base/text/utf8.hpp"
#include "shard/error.hpp"

namespace shard::convert {

namespace {

[[noreturn]] void refuse_coco(const std::string& why) { throw Error(ErrorCode::invalid_argument, why); }

enum class CocoSection : std::uint8_t { other, images, annotations, categories };

// The members of entries that are read. Everything else is passed over.
enum class CocoField : std::uint8_t {
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

struct CocoRule {
  CocoSection section;
  std::string_view name;
  CocoField field;
  std::string_view wanted;
};
constexpr CocoRule kCocoRules[] = {
    {CocoSection::images, "id", CocoField::id, "a whole number"},
    {CocoSection::images, "file_name", CocoField::file_name, "text"},
    {CocoSection::images, "width", CocoField::width, "a whole number"},
    {CocoSection::images, "height", CocoField::height, "a whole number"},
    {CocoSection::categories, "id", CocoField::id, "a whole number"},
    {CocoSection::categories, "name", CocoField::name, "text"},
    {CocoSection::annotations, "id", CocoField::id, "a whole number, or not be there"},
    {CocoSection::annotations, "image_id", CocoField::image_id, "a whole number"},
    {CocoSection::annotations, "category_id", CocoField::category_id, "a whole number"},
    {CocoSection::annotations, "bbox", CocoField::bbox, "a list of 4 numbers, or not be there"},
    {CocoSection::annotations, "area", CocoField::area, "a number, or not be there"},
    {CocoSection::annotations, "iscrowd", CocoField::iscrowd, "0 or 1, or not be there"},
    {CocoSection::annotations, "keypoints", CocoField::keypoints, "a list of numbers, or not be there"},
    {CocoSection::annotations, "caption", CocoField::caption, "text, or not be there"},
};

CocoField coco_field_of(CocoSection section, std::string_view name) {
  for (const CocoRule& rule : kCocoRules)
    if (rule.section == section && rule.name == name) return rule.field;
  return CocoField::other;
}

const CocoRule& coco_rule_of(CocoSection section, CocoField field) {
  for (const CocoRule& rule : kCocoRules)
    if (rule.section == section && rule.field == field) return rule;
  throw Error(ErrorCode::invalid_argument, "no such member");
}

// 3.0 and 3e2 are whole numbers too.
std::optional<std::int64_t> whole_of(double value) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (value != std::floor(value) || std::abs(value) > kExact) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

// Depth 1 is the document, 2 the list of a section, 3 an entry of it, 4 a list in the entry. A member
// that is read has its type, or the file is refused: a number that is text, or null, is not taken for
// one that is missing.
class CocoBuilder final : public JsonHandler {
 public:
  Coco coco;
  std::vector<std::int64_t> annotation_ids;

  void null() override { take_other("null"); }
  void boolean(bool value) override {
    if (depth_ == 3 && field_ == CocoField::iscrowd)
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
    if (const auto whole = number_of<std::int64_t>(text))
      return take_number(static_cast<double>(*whole), whole, text);
    const auto value = number_of<double>(text);
    if (!value) refuse_coco(fmt::format("{} is not a number of float64", text));
    take_number(*value, whole_of(*value), text);
  }
  void string(std::string&& value) override {
    if (depth_ == 3 && field_ == CocoField::file_name) {
      coco.images.back().file_name = std::move(value);
    } else if (depth_ == 3 && field_ == CocoField::name) {
      coco.categories.back().name = std::move(value);
    } else if (depth_ == 3 && field_ == CocoField::caption) {
      coco.captions.push_back(std::move(value));
      annotation().caption = static_cast<std::uint32_t>(coco.captions.size());
    } else {
      take_other(quoted_excerpt(value));
    }
  }
  void begin_object() override {
    if (depth_ != 2) take_other("an object");
    ++depth_;
    if (depth_ != 3 || section_ == CocoSection::other) return;
    seen_fields_ = 0;
    field_ = CocoField::other;
    if (section_ == CocoSection::images) coco.images.emplace_back();
    if (section_ == CocoSection::categories) coco.categories.emplace_back();
    if (section_ == CocoSection::annotations) coco.annotations.emplace_back();
  }
  void key(std::string&& name) override {
    if (depth_ == 1) {
      section_ = name == "images"        ? CocoSection::images
                 : name == "annotations" ? CocoSection::annotations
                 : name == "categories"  ? CocoSection::categories
                                         : CocoSection::other;
      if (section_ != CocoSection::other && std::exchange(seen_[static_cast<int>(section_)], true))
        refuse_coco(fmt::format("it has the list {} twice", name));
    } else if (depth_ == 3) {
      field_ = coco_field_of(section_, name);
      if (field_ == CocoField::other) return;
      if (has(field_)) refuse_coco(fmt::format("{} has {} twice", entry(), name));
      seen_fields_ |= bit(field_);
    }
  }
  void end_object() override {
    if (depth_ == 3) end_entry();
    --depth_;
  }
  void begin_array() override {
    const bool section = depth_ == 1 && section_ != CocoSection::other;
    const bool numbers = depth_ == 3 && (field_ == CocoField::bbox || field_ == CocoField::keypoints);
    if (!section && !numbers) take_other("a list");
    ++depth_;
    if (numbers) numbers_.clear();
  }
  void end_array() override {
    if (depth_ == 4) end_list();
    --depth_;
  }

  void check_sections() const {
    if (!seen_[static_cast<int>(CocoSection::images)] || !seen_[static_cast<int>(CocoSection::annotations)])
      refuse_coco(
          "it has no lists \"images\" and \"annotations\": these are not annotations in the format of COCO");
  }

 private:
  static std::uint32_t bit(CocoField field) { return std::uint32_t{1} << static_cast<unsigned>(field); }
  bool has(CocoField field) const { return (seen_fields_ & bit(field)) != 0; }
  CocoAnnotation& annotation() { return coco.annotations.back(); }

  // "annotation 17", or by its place where its id is not known yet.
  std::string entry() const {
    const auto named = [&](const char* what, const char* list, std::int64_t id, std::size_t count) {
      return has(CocoField::id) && id_is_read_ ? fmt::format("{} {}", what, id)
                                               : fmt::format("{}[{}]", list, count - 1);
    };
    if (section_ == CocoSection::images)
      return named("image", "images", coco.images.back().id, coco.images.size());
    if (section_ == CocoSection::categories)
      return named("category", "categories", coco.categories.back().id, coco.categories.size());
    return named("annotation", "annotations", coco.annotations.back().id, coco.annotations.size());
  }

  // A value that no member which is read can have here.
  void take_other(std::string_view found) const {
    if (section_ == CocoSection::other) return;
    if (depth_ == 1) refuse_coco("its images, annotations and categories must be lists");
    if (depth_ == 2)
      refuse_coco(fmt::format("an entry of its images, annotations or categories is {}: it must be an object",
                              found));
    if (field_ == CocoField::other) return;
    const CocoRule& rule = coco_rule_of(section_, field_);
    if (depth_ > 3)
      refuse_coco(fmt::format("{}: {} has {} in it: it must be {}", entry(), rule.name, found, rule.wanted));
    refuse_coco(fmt::format("{}: {} is {}: it must be {}", entry(), rule.name, found, rule.wanted));
  }

  // `text`: as it is written, or empty.
  void take_number(double value, std::optional<std::int64_t> whole, std::string_view text) {
    if (section_ == CocoSection::other || (depth_ >= 3 && field_ == CocoField::other)) return;
    const std::string written = text.empty() ? fmt::to_string(*whole) : std::string(text);
    const bool in_list = field_ == CocoField::bbox || field_ == CocoField::keypoints;
    const bool is_text =
        field_ == CocoField::file_name || field_ == CocoField::name || field_ == CocoField::caption;
    if (depth_ < 3 || is_text || in_list != (depth_ == 4) || std::abs(value) > kMost) take_other(written);
    if (in_list) return numbers_.push_back(value);
    if (field_ == CocoField::area) {
      annotation().area = value;
      annotation().has_area = true;
      return;
    }
    if (!whole || (field_ == CocoField::iscrowd && *whole != 0 && *whole != 1)) take_other(written);
    take_integer(*whole);
  }

  void take_integer(std::int64_t value) {
    const auto side = [&] {
      constexpr std::int64_t kMostPixels = 6'553'500;
      if (value < 1 || value > kMostPixels)
        refuse_coco(fmt::format("{} has a {} of {}", entry(), coco_rule_of(section_, field_).name, value));
      return static_cast<std::uint32_t>(value);
    };
    switch (field_) {
      case CocoField::id:
        id_is_read_ = true;
        if (section_ == CocoSection::images) coco.images.back().id = value;
        if (section_ == CocoSection::categories) coco.categories.back().id = value;
        if (section_ == CocoSection::annotations) annotation_ids.push_back(annotation().id = value);
        break;
      case CocoField::width:
        coco.images.back().width = side();
        break;
      case CocoField::height:
        coco.images.back().height = side();
        break;
      case CocoField::image_id:
        annotation().image = value;
        break;
      case CocoField::category_id:
        annotation().category = value;
        break;
      case CocoField::iscrowd:
        annotation().crowd = value != 0;
        break;
      default:
        break;
    }
  }

  void end_list() {
    if (section_ != CocoSection::annotations) return;
    CocoAnnotation& of = annotation();
    if (field_ == CocoField::bbox) {
      if (numbers_.size() != 4)
        refuse_coco(fmt::format("{}: a bbox of {} numbers: it must be x, y, width, height", entry(),
                                numbers_.size()));
      std::copy(numbers_.begin(), numbers_.end(), of.box);
      of.has_box = true;
    } else if (field_ == CocoField::keypoints) {
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
    if (section_ == CocoSection::other) return;
    const bool annotates = section_ == CocoSection::annotations;
    if (!has(CocoField::id) && !annotates)
      refuse_coco(fmt::format("an entry of {} has no whole number as id",
                              section_ == CocoSection::images ? "images" : "categories"));
    if (section_ == CocoSection::images && coco.images.back().file_name.empty())
      refuse_coco(fmt::format("{} has no file_name", entry()));
    if (section_ == CocoSection::categories && coco.categories.back().name.empty())
      refuse_coco(fmt::format("{} has no name", entry()));
    if (annotates && !has(CocoField::image_id))
      refuse_coco(fmt::format("{} has no whole number as image_id", entry()));
    if (annotates && !has(CocoField::category_id) && (annotation().has_box || annotation().keypoints != 0))
      refuse_coco(fmt::format("{} has no whole number as category_id", entry()));
    field_ = CocoField::other;
    id_is_read_ = false;
  }

  static constexpr double kMost = 1e30;  // float32 holds it

  std::size_t depth_ = 0;
  CocoSection section_ = CocoSection::other;
  bool seen_[4] = {};
  CocoField field_ = CocoField::other;
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
  parse_json(without_byte_order_mark(text), built, "it");
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
