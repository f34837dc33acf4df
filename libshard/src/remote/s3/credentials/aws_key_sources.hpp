// Where the keys for S3 come from, in the order of the AWS tools:
//
//   1. AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
//   2. a web identity: AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, or the same of the profile, exchanged at
//      STS
//   3. the profile's keys. Another way to keys that the AWS tools would take before them (a role, SSO, a
//      process) is an error
//   4. the container's service: AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI (ECS, EKS pod identity)
//   5. the metadata service of the instance, version 2
//
// Requests to services go to their own server only (redirects are errors) and take a bounded time: the
// metadata service 2 s for its first answer, so that other machines learn quickly that there is none.
// Formats: "Process credential provider" and "Container credential provider" of the AWS SDKs and Tools
// Reference Guide, "AssumeRoleWithWebIdentity" of the AWS STS API Reference, "Use the Instance Metadata
// Service" of the Amazon EC2 User Guide.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "remote/http/aws_keys.hpp"
#include "remote/s3/credentials/aws_settings.hpp"

namespace shard {

// The keys of this process. Sources that are asked over the network are asked once for all data sets that are
// open at the same time. Errors: invalid_argument (no keys; a profile that needs what is not done here), io,
// corrupt (answers). Secrets are in no message.
std::shared_ptr<AwsKeys> find_aws_keys(const AwsProfile& profile, const std::string& region);

// Parts, for tests. `who` begins the messages.

// {"AccessKeyId": ..., "SecretAccessKey": ..., "Token": ..., "Expiration": ...}. Errors: corrupt.
SigningKeys keys_of_json(std::string_view text, const std::string& who);
// <Credentials> of an answer of STS. Errors: corrupt.
SigningKeys keys_of_xml(std::string_view text, const std::string& who);
// "2026-11-23T10:05:00Z", also with a fraction of a second. Errors: corrupt.
WallTime time_of_text(std::string_view text, const std::string& who);

}  // namespace shard
