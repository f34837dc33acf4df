// Which certificates servers are compared with.
#pragma once

#include <cstdlib>

namespace shard {

// A file with certificates that the environment names; null: the system's.
inline const char* own_certificates() {
  for (const char* const name : {"SHARD_CA_BUNDLE", "AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"})
    if (const char* const path = std::getenv(name); path != nullptr && *path != '\0') return path;
  return nullptr;
}

}  // namespace shard
