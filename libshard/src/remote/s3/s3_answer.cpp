#include "remote/s3/s3_answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "remote/http/http_answer.hpp"

namespace shard {
namespace {

constexpr std::uint32_t kMaxParts = 10'000;

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

bool is_truncated(std::string_view xml) { return xml_text(xml, "IsTruncated") == "true"; }

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

S3PartList parse_parts(std::string_view xml) {
  S3PartList list;
  for (const std::string_view part : xml_elements(xml, "Part")) {
    const auto number = whole_number(xml_text(part, "PartNumber"));
    const auto size = whole_number(xml_text(part, "Size"));
    if (!number || *number == 0 || *number > kMaxParts || !size) continue;
    list.parts.push_back({static_cast<std::uint32_t>(*number), xml_text(part, "ETag"), *size});
  }
  if (is_truncated(xml)) list.next = xml_text(xml, "NextPartNumberMarker");
  return list;
}

S3UploadList parse_uploads(std::string_view xml) {
  S3UploadList list;
  for (const std::string_view upload : xml_elements(xml, "Upload")) {
    std::string id = xml_text(upload, "UploadId");
    if (!id.empty()) list.uploads.push_back({xml_text(upload, "Key"), std::move(id)});
  }
  if (is_truncated(xml)) {
    list.next_key = xml_text(xml, "NextKeyMarker");
    list.next_id = xml_text(xml, "NextUploadIdMarker");
  }
  return list;
}

S3KeyList parse_keys(std::string_view xml) {
  S3KeyList list;
  for (const std::string_view object : xml_elements(xml, "Contents"))
    list.keys.push_back(xml_text(object, "Key"));
  list.truncated = is_truncated(xml);
  if (list.truncated) list.next = xml_text(xml, "NextContinuationToken");
  return list;
}

std::string parts_to_xml(const std::vector<S3Part>& parts) {
  std::string xml = "<CompleteMultipartUpload>";
  for (const S3Part& part : parts)
    xml += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", part.number,
                       xml_escaped(part.etag));
  return xml + "</CompleteMultipartUpload>";
}

std::string plain_etag(std::string_view etag) {
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') etag = etag.substr(1, etag.size() - 2);
  const std::size_t dash = std::min(etag.find('-'), etag.size());
  if (dash != 32) return {};
  if (dash != etag.size() && !whole_number(etag.substr(dash + 1))) return {};
  const bool hexadecimal = std::all_of(etag.begin(), etag.begin() + 32, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
  return hexadecimal ? std::string(etag) : std::string();
}

}  // namespace shard
