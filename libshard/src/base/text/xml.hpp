// XML as events, through expat. For hostile text: a DOCTYPE is refused, so entities are never expanded; depth
// and the text of an element are bounded, and so is memory: by the size of the document.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace shard {

// Called at the tags of each element, in order; they refuse a document by throwing. `path` is from the root:
// "/annotation/object". Both views are valid during the call.
struct XmlEvents {
  // `text`: in UTF-8, what is between this tag and the one before it.
  std::function<void(std::string_view path, std::string_view text)> end;
  std::function<void(std::string_view path)> begin = {};
  std::size_t max_text_bytes = 64 * 1024;
};

// Throws corrupt, with the line, where it is no XML or out of bounds; what the events throw passes through.
void read_xml(std::string_view xml, const XmlEvents& events);

// The text of the first element of that name in as much of a document as is XML, which may be cut off.
std::string xml_text(std::string_view xml, std::string_view name);

// `text` as what stands between two tags, also of HTML.
std::string xml_escaped(std::string_view text);

}  // namespace shard
