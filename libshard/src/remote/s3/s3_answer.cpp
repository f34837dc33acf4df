#include "remote/s3/s3_answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text/number.hpp"
#include "base/text/xml.hpp"
#include "remote/http/http_answer.hpp"

namespace shard {
namespace {

constexpr std::uint32_t kMaxParts = 10'000;

// Reads a page of a list: `take` gets the path of each element inside the root, as "Part/Size", and its text.
// True: there are further pages.
template <class Take>
bool read_page(std::string_view xml, const Take& take) {
  bool truncated = false;
  read_xml(xml, {[&](std::string_view path, std::string_view text) {
             const std::size_t inside = path.find('/', 1);
             if (inside == std::string_view::npos) return;
             path.remove_prefix(inside + 1);
             if (path == "IsTruncated") truncated = text == "true";
             take(path, text);
           }});
  return truncated;
}

}  // namespace

S3PartList parse_parts(std::string_view xml) {
  S3PartList list;
  std::string marker;
  std::optional<std::uint64_t> number, size;
  std::string etag;
  const bool truncated = read_page(xml, [&](std::string_view path, std::string_view text) {
    if (path == "NextPartNumberMarker") marker = text;
    if (path == "Part/PartNumber") number = number_of<std::uint64_t>(text);
    if (path == "Part/Size") size = number_of<std::uint64_t>(text);
    if (path == "Part/ETag") etag = text;
    if (path != "Part") return;
    if (number && *number > 0 && *number <= kMaxParts && size)
      list.parts.push_back({static_cast<std::uint32_t>(*number), std::move(etag), *size});
    number = size = std::nullopt;
    etag.clear();
  });
  if (truncated) list.next = marker;
  return list;
}

S3UploadList parse_uploads(std::string_view xml) {
  S3UploadList list;
  std::string next_key, next_id;
  S3UploadList::Upload upload;
  const bool truncated = read_page(xml, [&](std::string_view path, std::string_view text) {
    if (path == "NextKeyMarker") next_key = text;
    if (path == "NextUploadIdMarker") next_id = text;
    if (path == "Upload/Key") upload.key = text;
    if (path == "Upload/UploadId") upload.id = text;
    if (path != "Upload") return;
    if (!upload.id.empty()) list.uploads.push_back(std::move(upload));
    upload = {};
  });
  if (!truncated) return list;
  list.next_key = next_key;
  list.next_id = next_id;
  return list;
}

S3KeyList parse_keys(std::string_view xml) {
  S3KeyList list;
  std::string next;
  list.truncated = read_page(xml, [&](std::string_view path, std::string_view text) {
    if (path == "NextContinuationToken") next = text;
    if (path == "Contents/Key") list.keys.emplace_back(text);
  });
  if (list.truncated) list.next = next;
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
  if (dash != etag.size() && !number_of<std::uint64_t>(etag.substr(dash + 1))) return {};
  const bool hexadecimal = std::all_of(etag.begin(), etag.begin() + 32, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
  return hexadecimal ? std::string(etag) : std::string();
}

}  // namespace shard
