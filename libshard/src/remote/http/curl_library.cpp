#include "remote/http/curl_library.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include "shard/remote.hpp"

namespace shard {

Certificates curl_certificates() {
  const curl_version_info_data* const library = curl_version_info(CURLVERSION_NOW);
  return find_certificates(library->cainfo, library->capath);
}

std::string remote_library() {
  const curl_version_info_data* const library = curl_version_info(CURLVERSION_NOW);
  const Certificates found = curl_certificates();
  std::string certificates = found.file;
  if (found.missing)
    certificates = "none";
  else if (certificates.empty())
    certificates = library->cainfo != nullptr ? library->cainfo : library->capath;
  return fmt::format("libcurl {} ({}), certificates: {}", library->version,
                     library->ssl_version != nullptr ? library->ssl_version : "no TLS", certificates);
}

}  // namespace shard
