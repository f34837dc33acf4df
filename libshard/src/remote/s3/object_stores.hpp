// Addresses of object stores: s3://BUCKET/PREFIX and hf://datasets/OWNER/NAME[@REVISION]/FOLDER become URLs
// and what allows requests to them.
//
// S3: keys and region are looked for as the AWS tools do it (aws_key_sources.hpp, aws_settings.hpp).
// AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, or endpoint_url of the profile, names another store than Amazon's;
// the bucket is then the first part of the path, or with SHARD_S3_STYLE=virtual of the host.
// SHARD_S3_ANONYMOUS=1: no keys.
//
// Hugging Face: HF_TOKEN, or the file HF_HOME/token (~/.cache/huggingface/token); none: anonymous.
// HF_ENDPOINT: another hub.
#pragma once

#include <string>
#include <string_view>

#include "remote/http/http_client.hpp"
#include "shard/error.hpp"

namespace shard {

struct StorePlace {
  std::string url;  // of the folder, percent-encoded
  HttpAccess access;
};

// Errors: invalid_argument (no such address; no keys), io, corrupt.
// May ask a service for keys, for a bounded time.
StorePlace resolve_s3(std::string_view address);
StorePlace resolve_hf(std::string_view address);

}  // namespace shard
