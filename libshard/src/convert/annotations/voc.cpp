#include <expat.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "base/text/quote.hpp"
#include "convert/annotations/label_file.hpp"
#include "shard/error.hpp"

namespace shard::convert {

namespace {

constexpr std::size_t kMaxXmlDepth = 32;
constexpr std::size_t kMaxXmlText = 4096;  // of an element
constexpr std::uint32_t kMaxVocSide = 100'000'000;

[[noreturn]] void refuse_voc(const std::string& why) { throw Error(ErrorCode::corrupt, why); }

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t begin = std::min(text.find_first_not_of(kBlank), text.size());
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

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

  void begin(std::string_view element) {
    if (depth_ == 0 && element != "annotation")
      refuse_voc(
          fmt::format("its root is <{}>: <annotation> of Pascal VOC is needed", quoted_excerpt(element)));
    if (++depth_ > kMaxXmlDepth)
      refuse_voc(fmt::format("more than {} elements inside each other", kMaxXmlDepth));
    if (is_value(path_))
      refuse_voc(
          fmt::format("{} has <{}> in it: text is needed", quoted_excerpt(path_), quoted_excerpt(element)));
    ends_.push_back(path_.size());
    path_ += '/';
    path_ += element;
    text_.clear();
    check_place(element);
    if (path_ == "/annotation/object") object_ = VocObject();
  }

  void text(std::string_view more) {
    if (text_.size() + more.size() > kMaxXmlText)
      refuse_voc(fmt::format("more than {} bytes of text in {}", kMaxXmlText, quoted_excerpt(path_)));
    text_ += more;
  }

  void end() {
    const std::string_view value = trimmed(text_);
    const std::string_view path = path_;
    if (path == "/annotation/filename") take_once(filename_, "filename", std::string(value));
    if (path == "/annotation/size/width") take_once(width_, "size/width", side(value));
    if (path == "/annotation/size/height") take_once(height_, "size/height", side(value));
    if (path == "/annotation/object/name") take_once(object_.name, "name", std::string(value));
    if (path == "/annotation/object/difficult") take_once(object_.difficult, "difficult", difficult(value));
    constexpr std::string_view kBox = "/annotation/object/bndbox/";
    if (path.starts_with(kBox)) take_side(path.substr(kBox.size()), value);
    if (path == "/annotation/object") end_object();
    if (path == "/annotation") end_annotation();
    path_.resize(ends_.back());
    ends_.pop_back();
    --depth_;
    text_.clear();
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
  void check_place(std::string_view element) const {
    const auto refuse = [&](std::string_view place) {
      refuse_voc(fmt::format("it has {}: {} is the place of Pascal VOC", quoted_excerpt(path_), place));
    };
    std::string name(element);
    for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (name == "object" && path_ != "/annotation/object") refuse("/annotation/object");
    if (name == "bndbox" && path_ != "/annotation/object/bndbox" && path_ != "/annotation/object/part/bndbox")
      refuse("/annotation/object/bndbox");
  }

  template <class T>
  void take_once(std::optional<T>& member, std::string_view name, T value) const {
    if (member)
      refuse_voc(
          fmt::format("{} has two {}", path_.starts_with("/annotation/object") ? which() : "it", name));
    member = std::move(value);
  }

  bool difficult(std::string_view text) const {
    if (text == "1" || text == "true" || text == "True") return true;
    if (text == "0" || text == "false" || text == "False") return false;
    refuse_voc(fmt::format("{}: difficult is {}: 0 or 1 is needed", which(), quoted_excerpt(text)));
  }

  static std::uint32_t side(std::string_view text) {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value > kMaxVocSide)
      refuse_voc(fmt::format("size {}: a number of pixels is needed", quoted_excerpt(text)));
    return value;
  }

  std::string which() const {
    return fmt::format(
        "object {}{}", number_ + 1,
        object_.name.value_or("").empty() ? "" : fmt::format(" ({})", quoted_excerpt(*object_.name)));
  }

  void take_side(std::string_view name, std::string_view text) {
    for (std::size_t i = 0; i < kSides.size(); ++i) {
      if (name != kSides[i]) continue;
      if (object_.sides[i]) refuse_voc(fmt::format("{} has two {}", which(), name));
      double value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc{} || end != text.data() + text.size() || !(std::abs(value) <= kMaxVocSide))
        refuse_voc(fmt::format("{}: {} is {}: a finite number of pixels is needed", which(), name,
                               quoted_excerpt(text)));
      object_.sides[i] = value;
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
  std::size_t depth_ = 0;
  std::string path_;
  std::vector<std::size_t> ends_;  // of path_, before each open element
  std::string text_;               // of the innermost element since it began or another one in it ended
  VocObject object_;
  std::size_t number_ = 0;
};

// Calls the builder from expat, which is C: exceptions wait until it has returned.
class XmlReader {
 public:
  explicit XmlReader(VocBuilder& builder) : builder_(builder), parser_(XML_ParserCreate(nullptr)) {
    if (!parser_) throw Error(ErrorCode::resource, "no memory for the XML parser");
    XML_SetUserData(parser_.get(), this);
    XML_SetElementHandler(
        parser_.get(),
        [](void* self, const char* name, const char**) {
          static_cast<XmlReader*>(self)->call([&](VocBuilder& to) { to.begin(name); });
        },
        [](void* self, const char*) {
          static_cast<XmlReader*>(self)->call([](VocBuilder& to) { to.end(); });
        });
    XML_SetCharacterDataHandler(parser_.get(), [](void* self, const char* text, int size) {
      static_cast<XmlReader*>(self)->call([&](VocBuilder& to) {
        to.text({text, static_cast<std::size_t>(size)});
      });
    });
    XML_SetStartDoctypeDeclHandler(parser_.get(), [](void* self, const char*, const char*, const char*, int) {
      static_cast<XmlReader*>(self)->call([](VocBuilder&) {
        refuse_voc("it has a DOCTYPE, which annotations do not need: entities are not expanded");
      });
    });
  }

  void parse(std::string_view text) {
    const XML_Status status = XML_Parse(parser_.get(), text.data(), static_cast<int>(text.size()), XML_TRUE);
    if (error_) std::rethrow_exception(error_);
    if (status == XML_STATUS_OK) return;
    refuse_voc(fmt::format("line {}: no XML: {}", XML_GetCurrentLineNumber(parser_.get()),
                           XML_ErrorString(XML_GetErrorCode(parser_.get()))));
  }

 private:
  template <class Work>
  void call(const Work& work) noexcept {
    if (error_) return;
    try {
      work(builder_);
    } catch (...) {
      error_ = std::current_exception();
      XML_StopParser(parser_.get(), XML_FALSE);
    }
  }

  struct Free {
    void operator()(XML_Parser parser) const noexcept { XML_ParserFree(parser); }
  };
  VocBuilder& builder_;
  std::unique_ptr<std::remove_pointer_t<XML_Parser>, Free> parser_;
  std::exception_ptr error_;
};

}  // namespace

LabelFile parse_voc(std::string_view text) {
  if (text.size() > kMaxLabelFileBytes)
    refuse_voc(fmt::format("has {} bytes; at most {} are read", text.size(), kMaxLabelFileBytes));
  VocBuilder builder;
  XmlReader(builder).parse(text);
  return std::move(builder.file);
}

}  // namespace shard::convert
