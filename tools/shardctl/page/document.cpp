#include "shardctl/page/document.hpp"

#include <string_view>

#include "base/text/xml.hpp"
#include "shardctl/page/assets.hpp"

namespace shard::ctl {
namespace {

// Valid JSON without '<', so that no end of the script element is in it.
std::string script_json(const Json& data) {
  std::string escaped;
  for (const char c : json_text(data)) {
    if (c == '<')
      escaped += "\\u003c";
    else
      escaped += c;
  }
  return escaped;
}

}  // namespace

std::string html_document(const std::string& title, const Json& data) {
  std::string html;
  std::string_view rest = k_index_html;
  // Marks are looked for in the template only, never in what was put in.
  const auto fill = [&](std::string_view mark, std::string_view with) {
    const std::size_t at = rest.find(mark);
    html += rest.substr(0, at);
    html += with;
    rest.remove_prefix(at + mark.size());
  };
  fill("@title@", xml_escaped(title));
  fill("@style@", k_page_css);
  fill("@data@", script_json(data));
  fill("@script@", k_page_js);
  html += rest;
  return html;
}

}  // namespace shard::ctl
