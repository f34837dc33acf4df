#include <fmt/format.h>

#include "base/text/quote.hpp"
#include "remote/http/http_client.hpp"

namespace shard {

void HttpObject::check_same(const std::string& etag, std::uint64_t size_bytes) {
  std::uint64_t known = 0;
  if (!size_bytes_.compare_exchange_strong(known, size_bytes, std::memory_order_acq_rel) &&
      known != size_bytes)
    throw Error(ErrorCode::corrupt, fmt::format("{} has {} bytes on the server, not {}: it was replaced or "
                                                "is not complete; upload it again, or open the data "
                                                "set again if it was",
                                                quoted(name_), size_bytes, known));
  if (etag.empty()) return;
  const std::lock_guard lock(mutex_);
  if (etag_.empty()) etag_ = etag;
  if (etag_ != etag)
    throw Error(ErrorCode::corrupt, fmt::format("{} was changed on the server while it was read (its ETag is "
                                                "another one): open the data set again",
                                                quoted(name_)));
}

std::string HttpObject::etag() const {
  const std::lock_guard lock(mutex_);
  return etag_;
}

}  // namespace shard
