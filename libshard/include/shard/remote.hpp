// Data sets on servers: where a folder or shard may be named, https://HOST/PATH,
// http://HOST/PATH can be given (docs/remote.md).
#pragma once

#include <filesystem>
#include <string>

namespace shard {

// Whether `path` is an address: it begins with "https://", "http://", "s3://" or "hf://", in lower case.
bool is_remote(const std::filesystem::path& path) noexcept;

// "libcurl 7.88.1 (OpenSSL/3.0.17), certificates: /etc/ssl/certs/ca-certificates.crt": what requests to
// servers are made with. Without libcurl "none".
std::string remote_library();

}  // namespace shard
