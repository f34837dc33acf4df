#include "remote/http/certificates.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include "base/text/quote.hpp"
#include "remote/http/address.hpp"
#include "shard/error.hpp"

namespace shard {
namespace {

constexpr std::array kSystemCertificates{
    "/etc/ssl/certs/ca-certificates.crt",                 // Debian, Ubuntu, Arch, Alpine
    "/etc/pki/tls/certs/ca-bundle.crt",                   // Fedora, RHEL
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // the same, newer ones
    "/etc/ssl/ca-bundle.pem",                             // SUSE
    "/etc/ssl/cert.pem",                                  // Alpine, BSD
};

bool is_certificate_file(const char* path) {
  std::error_code ignored;
  return path != nullptr && std::filesystem::is_regular_file(path, ignored);
}

}  // namespace

std::span<const char* const> system_certificates() noexcept { return kSystemCertificates; }

Certificates find_certificates(const char* built_in, const char* built_in_folder,
                               std::span<const char* const> system) {
  for (const char* const name : {"SHARD_CA_BUNDLE", "AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"})
    if (const char* const path = std::getenv(name); path != nullptr && *path != '\0') return {path};
  if (is_certificate_file(built_in)) return {};
  for (const char* const path : system)
    if (is_certificate_file(path)) return {path};
  return {"", built_in_folder == nullptr};
}

void require_certificates(const Certificates& certificates, std::string_view url) {
  if (!certificates.missing || !url.starts_with("https://")) return;
  throw Error(
      ErrorCode::io,
      fmt::format("the certificate of {} cannot be checked: this system has no certificates of "
                  "authorities ({}): install ca-certificates, or set SHARD_CA_BUNDLE to a file with them",
                  quoted(origin_of(url)), fmt::join(kSystemCertificates, ", ")));
}

}  // namespace shard
