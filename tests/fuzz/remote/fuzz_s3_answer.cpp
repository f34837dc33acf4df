// Any text as an answer of an object store: what is taken from it is in bounds, and part of it. A byte of
// Latin-1 becomes two of UTF-8.
#include <cstdlib>
#include <string_view>

#include "remote/s3/s3_answer.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shard;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    for (const S3Part& part : parse_parts(text).parts)
      if (part.number < 1 || part.number > 10'000 || part.etag.size() > 2 * size) std::abort();
    for (const S3UploadList::Upload& upload : parse_uploads(text).uploads)
      if (upload.id.empty() || upload.id.size() > 2 * size || upload.key.size() > 2 * size) std::abort();
    for (const std::string& key : parse_keys(text).keys)
      if (key.size() > 2 * size) std::abort();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt) std::abort();
  }
  const std::string etag = plain_etag(text);
  if (!etag.empty() && (etag.size() < 32 || etag.size() > size)) std::abort();
  return 0;
}
