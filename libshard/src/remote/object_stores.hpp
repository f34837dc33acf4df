// Addresses of object stores: s3://BUCKET/PREFIX and hf://datasets/OWNER/NAME[@REVISION]/FOLDER become URLs and what allows requests to them.
//
// S3: keys are looked for as the AWS tools do it: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; then the profile
// AWS_PROFILE (or "default") of AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials) and of AWS_CONFIG_FILE (~/.aws/config). The region is
// AWS_REGION, AWS_DEFAULT_REGION, that of the profile, or us-east-1. AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, or endpoint_url of the
// profile, names another store than Amazon's; the bucket is then the first part of the path, or with SHARD_S3_STYLE=virtual of the host.
// SHARD_S3_ANONYMOUS=1: no keys.
//
// Hugging Face: HF_TOKEN, or the file HF_HOME/token (~/.cache/huggingface/token); none: anonymous. HF_ENDPOINT: another hub.
#pragma once

#include <string>
#include <string_view>

#include "remote/http_client.hpp"
#include "shard/error.hpp"

namespace shard {

struct StorePlace {
  std::string url;  // of the folder, percent-encoded
  HttpAccess access;
};

// Errors: invalid_argument (no such address; no keys), io.
StorePlace resolve_s3(std::string_view address);
StorePlace resolve_hf(std::string_view address);

}  // namespace shard
