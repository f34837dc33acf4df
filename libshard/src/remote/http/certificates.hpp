// With which authorities the certificates of servers are compared.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace shard {

struct Certificates {
  std::string file;      // of authorities, PEM; empty: libcurl's own
  bool missing = false;  // libcurl has none of its own, and neither has the system where it is looked for
};

// Where distributions keep the certificates of authorities.
std::span<const char* const> system_certificates() noexcept;

// The first of: the file that SHARD_CA_BUNDLE, AWS_CA_BUNDLE, CURL_CA_BUNDLE or SSL_CERT_FILE names, which
// need not exist; `built_in`, which libcurl was built with, if it is a file; the first of `system` that is a
// file; `built_in_folder`. The last two of libcurl may be null.
Certificates find_certificates(const char* built_in, const char* built_in_folder,
                               std::span<const char* const> system = system_certificates());

// Throws io if `url` is https and there are no certificates, with what to do.
void require_certificates(const Certificates& certificates, std::string_view url);

}  // namespace shard
