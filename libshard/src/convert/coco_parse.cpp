#include "convert/coco_parse.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
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

// Depth 1 is the document, 2 the list of a section, 3 an entry of it, 4 a list in the entry.
class CocoBuilder final : public JsonHandler {
 public:
  Coco coco;

  void null() override {}
  void boolean(bool value) override {
    if (in_entry() && section_ == Section::annotations && field_ == "iscrowd") annotation().crowd = value;
  }
  void unsigned_integer(std::uint64_t value) override {
    if (in_entry() && value <= std::uint64_t{std::numeric_limits<std::int64_t>::max()} &&
        take_integer(static_cast<std::int64_t>(value)))
      return;
    take_number(static_cast<double>(value));
  }
  void other_number(std::string_view text) override {
    std::int64_t whole = 0;
    const char* const end = text.data() + text.size();
    if (const auto [last, error] = std::from_chars(text.data(), end, whole);
        error == std::errc{} && last == end) {
      if (in_entry() && take_integer(whole)) return;
      return take_number(static_cast<double>(whole));
    }
    double value = 0;
    if (const auto [last, error] = std::from_chars(text.data(), end, value);
        error != std::errc{} || last != end)
      refuse_coco(fmt::format("{} is not a number of float64", text));
    take_number(value);
  }
  void string(std::string&& value) override {
    if (!in_entry()) return;
    if (section_ == Section::images && field_ == "file_name") {
      coco.images.back().file_name = std::move(value);
    } else if (section_ == Section::categories && field_ == "name") {
      coco.categories.back().name = std::move(value);
    } else if (section_ == Section::annotations && field_ == "caption") {
      coco.captions.push_back(std::move(value));
      annotation().caption = static_cast<std::uint32_t>(coco.captions.size());
    }
  }
  void begin_object() override {
    ++depth_;
    if (depth_ == 2 && section_ != Section::other)
      refuse_coco("its images, annotations and categories must be lists");
    if (depth_ != 3 || section_ == Section::other) return;
    has_id_ = has_image_ = false;
    numbers_.clear();
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
      field_ = std::move(name);
    }
  }
  void end_object() override {
    if (depth_ == 3) end_entry();
    --depth_;
  }
  void begin_array() override {
    ++depth_;
    if (depth_ == 3 && section_ != Section::other)
      refuse_coco("an entry of its images, annotations or categories is a list: it must be an object");
    if (depth_ == 4) numbers_.clear();
  }
  void end_array() override {
    if (depth_ == 4 && section_ == Section::annotations) end_list();
    --depth_;
  }

  void check_sections() const {
    if (!seen_[static_cast<int>(Section::images)] || !seen_[static_cast<int>(Section::annotations)])
      refuse_coco(
          "it has no lists \"images\" and \"annotations\": these are not annotations in the format of COCO");
  }

 private:
  enum class Section : std::uint8_t { other, images, annotations, categories };

  bool in_entry() const { return depth_ == 3 && section_ != Section::other; }
  CocoAnnotation& annotation() { return coco.annotations.back(); }

  // True: the field is a whole number.
  bool take_integer(std::int64_t value) {
    const auto side = [&] {
      if (value < 1 || value > 65'535 * 100)
        refuse_coco(fmt::format("image {} has a {} of {}", coco.images.back().id, field_, value));
      return static_cast<std::uint32_t>(value);
    };
    if (field_ == "id") {
      has_id_ = true;
      if (section_ == Section::images) coco.images.back().id = value;
      if (section_ == Section::categories) coco.categories.back().id = value;
      if (section_ == Section::annotations) annotation().id = value;
      return true;
    }
    if (section_ == Section::images && field_ == "width") return coco.images.back().width = side(), true;
    if (section_ == Section::images && field_ == "height") return coco.images.back().height = side(), true;
    if (section_ != Section::annotations) return false;
    if (field_ == "image_id") return has_image_ = true, annotation().image = value, true;
    if (field_ == "category_id") return annotation().category = value, true;
    if (field_ == "iscrowd") return annotation().crowd = value != 0, true;
    return false;
  }

  void take_number(double value) {
    if (section_ != Section::annotations) return;
    if (depth_ == 3 && field_ == "area") {
      annotation().area = value;
      annotation().has_area = true;
    }
    if (depth_ == 4 && (field_ == "bbox" || field_ == "keypoints")) numbers_.push_back(value);
  }

  void end_list() {
    CocoAnnotation& of = annotation();
    if (field_ == "bbox") {
      if (numbers_.size() != 4)
        refuse_coco(fmt::format("annotation {}: a bbox of {} numbers: it must be x, y, width, height", of.id,
                                numbers_.size()));
      std::copy(numbers_.begin(), numbers_.end(), of.box);
      of.has_box = true;
    } else if (field_ == "keypoints") {
      if (numbers_.size() % 3 != 0)
        refuse_coco(fmt::format("annotation {}: keypoints of {} numbers: a multiple of 3 is needed", of.id,
                                numbers_.size()));
      of.keypoints_begin = coco.keypoints.size();
      of.keypoints = static_cast<std::uint32_t>(numbers_.size());
      for (const double value : numbers_) coco.keypoints.push_back(static_cast<float>(value));
    }
  }

  void end_entry() {
    if (section_ == Section::other) return;
    const bool annotates = section_ == Section::annotations;
    if (!has_id_ && !annotates)
      refuse_coco(fmt::format("an entry of {} has no whole number as id",
                              section_ == Section::images ? "images" : "categories"));
    if (section_ == Section::images && coco.images.back().file_name.empty())
      refuse_coco(fmt::format("image {} has no file_name", coco.images.back().id));
    if (annotates && !has_image_)
      refuse_coco(fmt::format("annotation {} has no whole number as image_id", annotation().id));
  }

  std::size_t depth_ = 0;
  Section section_ = Section::other;
  bool seen_[4] = {};
  std::string field_;
  bool has_id_ = false;
  bool has_image_ = false;
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
