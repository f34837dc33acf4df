#include "base/text/xml.hpp"

#include <expat.h>
#include <fmt/format.h>

#include <exception>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "base/text/quote.hpp"
#include "shard/error.hpp"

namespace shard {
namespace {

constexpr std::size_t kMaxXmlDepth = 32;

[[noreturn]] void refuse_xml(const std::string& why) { throw Error(ErrorCode::corrupt, why); }

// Calls the events from expat, which is C: exceptions wait until it has returned.
class XmlReader {
 public:
  explicit XmlReader(const XmlEvents& events) : events_(events), parser_(XML_ParserCreate(nullptr)) {
    if (!parser_) throw Error(ErrorCode::resource, "no memory for the XML parser");
    XML_SetUserData(parser_.get(), this);
    XML_SetElementHandler(
        parser_.get(),
        [](void* self, const char* name, const char**) {
          call(self, [&](XmlReader& to) { to.begin(name); });
        },
        [](void* self, const char*) { call(self, [](XmlReader& to) { to.end(); }); });
    XML_SetCharacterDataHandler(parser_.get(), [](void* self, const char* text, int size) {
      call(self, [&](XmlReader& to) { to.text({text, static_cast<std::size_t>(size)}); });
    });
    XML_SetStartDoctypeDeclHandler(parser_.get(), [](void* self, const char*, const char*, const char*, int) {
      call(self,
           [](XmlReader&) { refuse_xml("it has a DOCTYPE, which is refused: entities are not expanded"); });
    });
  }

  void read(std::string_view xml) {
    if (xml.size() > std::numeric_limits<int>::max()) refuse_xml(fmt::format("has {} bytes", xml.size()));
    const XML_Status status = XML_Parse(parser_.get(), xml.data(), static_cast<int>(xml.size()), XML_TRUE);
    if (error_) std::rethrow_exception(error_);
    if (status == XML_STATUS_OK) return;
    refuse_xml(fmt::format("line {}: no XML: {}", XML_GetCurrentLineNumber(parser_.get()),
                           XML_ErrorString(XML_GetErrorCode(parser_.get()))));
  }

 private:
  template <class Work>
  static void call(void* self, const Work& work) noexcept {
    XmlReader& reader = *static_cast<XmlReader*>(self);
    if (reader.error_) return;
    try {
      work(reader);
    } catch (...) {
      reader.error_ = std::current_exception();
      XML_StopParser(reader.parser_.get(), XML_FALSE);
    }
  }

  void begin(std::string_view name) {
    if (ends_.size() == kMaxXmlDepth)
      refuse_xml(fmt::format("more than {} elements inside each other", kMaxXmlDepth));
    ends_.push_back(path_.size());
    path_ += '/';
    path_ += name;
    text_.clear();
    if (events_.begin) events_.begin(path_);
  }

  void text(std::string_view more) {
    if (text_.size() + more.size() > events_.max_text_bytes)
      refuse_xml(
          fmt::format("more than {} bytes of text in {}", events_.max_text_bytes, quoted_excerpt(path_)));
    text_ += more;
  }

  void end() {
    events_.end(path_, text_);
    path_.resize(ends_.back());
    ends_.pop_back();
    text_.clear();
  }

  struct Free {
    void operator()(XML_Parser parser) const noexcept { XML_ParserFree(parser); }
  };
  const XmlEvents& events_;
  std::unique_ptr<std::remove_pointer_t<XML_Parser>, Free> parser_;
  std::exception_ptr error_;
  std::string path_;
  std::vector<std::size_t> ends_;  // of path_, before each open element
  std::string text_;
};

}  // namespace

void read_xml(std::string_view xml, const XmlEvents& events) { XmlReader(events).read(xml); }

std::string xml_text(std::string_view xml, std::string_view name) {
  std::string found;
  bool known = false;
  try {
    read_xml(xml, {[&](std::string_view path, std::string_view text) {
               if (known || path.substr(path.rfind('/') + 1) != name) return;
               found = text;
               known = true;
             }});
  } catch (const Error&) {  // what is before the error is taken
  }
  return found;
}

std::string xml_escaped(std::string_view text) {
  std::string xml;
  for (const char c : text) {
    if (c == '&')
      xml += "&amp;";
    else if (c == '<')
      xml += "&lt;";
    else if (c == '>')
      xml += "&gt;";
    else
      xml += c;
  }
  return xml;
}

}  // namespace shard
