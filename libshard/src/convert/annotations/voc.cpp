#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include "base/text/number.hpp"
#include "base/text/quote.hpp"
#include "base/text/words.hpp"
#include "base/text/xml.hpp"
#include "convert/annotations/label_file.hpp"
#include "shard/error.hpp"

namespace shard::convert {

namespace {

constexpr std::size_t kMaxVocText = 4096;  // of an element
constexpr std::uint32_t kMaxVocSide = 100'000'000;

[[noreturn]] void refuse_voc(const std::string& why) { throw Error(ErrorCode::corrupt, why); }

// An <object> while it is read.
struct VocObject {
  std::optional<std::string> name;
  std::optional<bool> difficult;
  std::array<std::optional<double>, 4> sides;  // xmin, ymin, xmax, ymax
};
constexpr std::array<std::string_view, 4> kSides{"xmin", "ymin", "xmax", "ymax"};

// Takes the elements by their paths from the root. Everything else is passed over: <part>, <pose>, <actions>.
class VocBuilder {
 public:
  LabelFile file;

  void begin(std::string_view path) {
    const std::size_t slash = path.rfind('/');
    const std::string_view parent = path.substr(0, slash);
    const std::string_view element = path.substr(slash + 1);
    if (parent.empty() && element != "annotation")
      refuse_voc(
          fmt::format("its root is <{}>: <annotation> of Pascal VOC is needed", quoted_excerpt(element)));
    if (is_value(parent))
      refuse_voc(
          fmt::format("{} has <{}> in it: text is needed", quoted_excerpt(parent), quoted_excerpt(element)));
    check_place(path, element);
    if (path == "/annotation/object") object_ = VocObject();
  }

  void end(std::string_view path, std::string_view text) {
    const std::string_view value = trimmed(text);
    if (path == "/annotation/filename") take_once("it", filename_, "filename", std::string(value));
    if (path == "/annotation/size/width") take_once("it", width_, "size/width", side(value));
    if (path == "/annotation/size/height") take_once("it", height_, "size/height", side(value));
    if (path == "/annotation/object/name") take_once(which(), object_.name, "name", std::string(value));
    if (path == "/annotation/object/difficult")
      take_once(which(), object_.difficult, "difficult", difficult(value));
    constexpr std::string_view kBox = "/annotation/object/bndbox/";
    if (path.starts_with(kBox)) take_side(path.substr(kBox.size()), value);
    if (path == "/annotation/object") end_object();
    if (path == "/annotation") end_annotation();
  }

 private:
  // Whether the element's text is read.
  static bool is_value(std::string_view path) {
    constexpr std::string_view kValues[] = {"/annotation/filename", "/annotation/size/width",
                                            "/annotation/size/height", "/annotation/object/name",
                                            "/annotation/object/difficult"};
    constexpr std::string_view kBox = "/annotation/object/bndbox/";
    return std::find(std::begin(kValues), std::end(kValues), path) != std::end(kValues) ||
           (path.starts_with(kBox) &&
            std::find(kSides.begin(), kSides.end(), path.substr(kBox.size())) != kSides.end());
  }

  // An object in another place would be passed over.
  static void check_place(std::string_view path, std::string_view element) {
    const auto refuse = [&](std::string_view place) {
      refuse_voc(fmt::format("it has {}: {} is the place of Pascal VOC", quoted_excerpt(path), place));
    };
    const std::string name = ascii_lower(element);
    if (name == "object" && path != "/annotation/object") refuse("/annotation/object");
    if (name == "bndbox" && path != "/annotation/object/bndbox" && path != "/annotation/object/part/bndbox")
      refuse("/annotation/object/bndbox");
  }

  template <class T>
  static void take_once(const std::string& who, std::optional<T>& member, std::string_view name, T value) {
    if (member) refuse_voc(fmt::format("{} has two {}", who, name));
    member = std::move(value);
  }

  bool difficult(std::string_view text) const {
    if (text == "1" || text == "true" || text == "True") return true;
    if (text == "0" || text == "false" || text == "False") return false;
    refuse_voc(fmt::format("{}: difficult is {}: 0 or 1 is needed", which(), quoted_excerpt(text)));
  }

  static std::uint32_t side(std::string_view text) {
    const auto value = number_of<std::uint32_t>(text);
    if (!value || *value > kMaxVocSide)
      refuse_voc(fmt::format("size {}: a number of pixels is needed", quoted_excerpt(text)));
    return *value;
  }

  std::string which() const {
    return fmt::format(
        "object {}{}", number_ + 1,
        object_.name.value_or("").empty() ? "" : fmt::format(" ({})", quoted_excerpt(*object_.name)));
  }

  void take_side(std::string_view name, std::string_view text) {
    for (std::size_t i = 0; i < kSides.size(); ++i) {
      if (name != kSides[i]) continue;
      const auto value = number_of<double>(text);
      if (!value || !(std::abs(*value) <= kMaxVocSide))
        refuse_voc(fmt::format("{}: {} is {}: a finite number of pixels is needed", which(), name,
                               quoted_excerpt(text)));
      take_once(which(), object_.sides[i], name, *value);
    }
  }

  void end_object() {
    if (object_.name.value_or("").empty()) refuse_voc(fmt::format("{} has no name", which()));
    for (std::size_t i = 0; i < kSides.size(); ++i)
      if (!object_.sides[i]) refuse_voc(fmt::format("{} has no {} in its bndbox", which(), kSides[i]));
    LabelledObject found;
    found.object.box = {*object_.sides[0] - 1, *object_.sides[1] - 1, *object_.sides[2], *object_.sides[3]};
    const auto& [left, top, right, bottom] = found.object.box;
    if (left < right && top < bottom) {
      found.object.crowd = object_.difficult.value_or(false);
      found.name = *object_.name;
      file.objects.push_back(std::move(found));
    } else if (file.invalid_boxes.number++ == 0) {
      file.invalid_boxes.first = fmt::format("{}: a box from {}, {} to {}, {}", which(), *object_.sides[0],
                                             *object_.sides[1], *object_.sides[2], *object_.sides[3]);
    }
    ++number_;
  }

  // 0 and 0 is not known. One of them alone is not a size.
  void end_annotation() {
    const std::uint32_t width = width_.value_or(0);
    const std::uint32_t height = height_.value_or(0);
    if ((width == 0) != (height == 0))
      refuse_voc(fmt::format("its size is {} x {}: both sides are needed, or none", width, height));
    file.size = {width, height};
    file.filename = filename_.value_or("");
  }

  std::optional<std::string> filename_;
  std::optional<std::uint32_t> width_;
  std::optional<std::uint32_t> height_;
  VocObject object_;
  std::size_t number_ = 0;
};

}  // namespace

LabelFile parse_voc(std::string_view text) {
  if (text.size() > kMaxLabelFileBytes)
    refuse_voc(fmt::format("has {} bytes; at most {} are read", text.size(), kMaxLabelFileBytes));
  VocBuilder builder;
  read_xml(text, {[&](std::string_view path, std::string_view value) { builder.end(path, value); },
                  [&](std::string_view path) { builder.begin(path); }, kMaxVocText});
  return std::move(builder.file);
}

}  // namespace shard::convert
