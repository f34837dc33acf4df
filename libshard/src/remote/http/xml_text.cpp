#include "remote/http/xml_text.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <utility>

namespace shard {
namespace {

void append_utf8(std::string& text, std::uint32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xc0 | code >> 6U);
    text += static_cast<char>(0x80 | (code & 0x3fU));
  } else if (code < 0x10000) {
    text += static_cast<char>(0xe0 | code >> 12U);
    text += static_cast<char>(0x80 | (code >> 6U & 0x3fU));
    text += static_cast<char>(0x80 | (code & 0x3fU));
  } else {
    text += static_cast<char>(0xf0 | code >> 18U);
    text += static_cast<char>(0x80 | (code >> 12U & 0x3fU));
    text += static_cast<char>(0x80 | (code >> 6U & 0x3fU));
    text += static_cast<char>(0x80 | (code & 0x3fU));
  }
}

// Of "amp" or "#x41"; false: it is none.
bool append_entity(std::string& text, std::string_view name) {
  constexpr std::array<std::pair<std::string_view, char>, 5> kNamed{
      {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}}};
  for (const auto& [known, character] : kNamed)
    if (name == known) {
      text += character;
      return true;
    }
  if (!name.starts_with('#')) return false;
  const bool hexadecimal = name.starts_with("#x");
  const std::string_view digits = name.substr(hexadecimal ? 2 : 1);
  std::uint32_t code = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), code, hexadecimal ? 16 : 10);
  if (error != std::errc{} || end != digits.data() + digits.size() || code == 0 || code > 0x10ffff)
    return false;
  append_utf8(text, code);
  return true;
}

std::string without_entities(std::string_view xml) {
  std::string text;
  while (!xml.empty()) {
    const std::size_t begin = std::min(xml.find('&'), xml.size());
    text += xml.substr(0, begin);
    xml.remove_prefix(begin);
    const std::size_t end = xml.find(';');
    if (xml.empty()) break;
    if (end != std::string_view::npos && append_entity(text, xml.substr(1, end - 1))) {
      xml.remove_prefix(end + 1);
    } else {
      text += '&';
      xml.remove_prefix(1);
    }
  }
  return text;
}

}  // namespace

std::vector<std::string_view> xml_elements(std::string_view xml, std::string_view name) {
  std::vector<std::string_view> found;
  const std::string open = fmt::format("<{}", name);
  const std::string close = fmt::format("</{}>", name);
  for (std::size_t at = xml.find(open); at != std::string_view::npos; at = xml.find(open, at)) {
    at += open.size();
    if (at >= xml.size() || (xml[at] != '>' && xml[at] != ' ')) continue;  // a longer name
    const std::size_t begin = xml.find('>', at);
    const std::size_t end = begin == std::string_view::npos ? begin : xml.find(close, begin);
    if (end == std::string_view::npos) break;
    found.push_back(xml.substr(begin + 1, end - begin - 1));
    at = end + close.size();
  }
  return found;
}

std::string xml_text(std::string_view xml, std::string_view name) {
  const std::vector<std::string_view> found = xml_elements(xml, name);
  return found.empty() ? std::string() : without_entities(found.front());
}

}  // namespace shard
