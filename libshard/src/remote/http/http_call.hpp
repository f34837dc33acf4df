// One small request to a service: for credentials, not for data.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "shard/error.hpp"

namespace shard {

struct HttpCall {
  const char* method = "GET";
  std::string url;
  // "NAME: VALUE". No line may hold an end of line (is_header_word()).
  std::vector<std::string> headers{};
  std::string body{};
  bool proxy = true;  // false: http_proxy and the like do not count
  std::chrono::milliseconds connect_time{1000};
  std::chrono::milliseconds whole_time{2000};
  // In all, after answers 429 and 5xx. With `again_if_silent` also after no answer.
  unsigned attempts = 3;
  bool again_if_silent = false;
};

struct HttpReply {
  long status = 0;
  std::string body;  // at most 64 KiB
};

// In the calling thread, which waits at most attempts x (whole_time + 1 s). Redirects are not followed: they
// are answers. Errors: io (no answer; it has more than 64 KiB), unsupported (no libcurl). Messages name the
// server, but neither the path nor headers. Thread safe.
HttpReply call_http(const HttpCall& call);

}  // namespace shard
