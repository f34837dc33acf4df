#include "remote/s3/s3_answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "remote/http/http_answer.hpp"
#include "remote/http/xml_text.hpp"

namespace shard {
namespace {

constexpr std::uint32_t kMaxParts = 10'000;

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
