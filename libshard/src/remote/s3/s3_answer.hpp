// What S3 answers about uploads and keys, from its XML. Pure functions of hostile text. What is not as it
// should be is left out; where it is no XML, so that it may not be all of a list, the error is corrupt and
// names the line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shard/error.hpp"

namespace shard {

struct S3Part {
  std::uint32_t number = 0;  // from 1 on
  std::string etag;
  std::uint64_t size_bytes = 0;
};

// A page of ListParts.
struct S3PartList {
  std::vector<S3Part> parts;
  std::string next;  // the marker of the next page; empty: this was the last one
};
S3PartList parse_parts(std::string_view xml);

// A page of ListMultipartUploads.
struct S3UploadList {
  struct Upload {
    std::string key;
    std::string id;
  };
  std::vector<Upload> uploads;
  std::string next_key;  // markers of the next page; empty: this was the last one
  std::string next_id;
};
S3UploadList parse_uploads(std::string_view xml);

// A page of ListObjectsV2: the keys.
struct S3KeyList {
  std::vector<std::string> keys;
  bool truncated = false;  // there are further pages
  std::string next;        // the token of the next page; empty: there is none
};
S3KeyList parse_keys(std::string_view xml);

// The body of CompleteMultipartUpload.
std::string parts_to_xml(const std::vector<S3Part>& parts);

// An ETag that is an MD5, or that of a multipart upload: lower-case hexadecimal digits, without quotes,
// and "-COUNT". Empty: it is neither.
std::string plain_etag(std::string_view etag);

}  // namespace shard
