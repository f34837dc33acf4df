// What the environment and the shared files of the AWS tools say.
#pragma once

#include <initializer_list>
#include <map>
#include <string>

#include "shard/error.hpp"

namespace shard {

// Empty if it is not set.
std::string environment_variable(const char* name);
// The first of them that is not empty.
std::string first_variable(std::initializer_list<const char*> names);

// The profile AWS_PROFILE (or AWS_DEFAULT_PROFILE, or "default") of AWS_SHARED_CREDENTIALS_FILE
// (~/.aws/credentials) and of AWS_CONFIG_FILE (~/.aws/config). What both say counts as in the first. The
// files are read as the AWS CLI does:
//
//   [profile "my set"]            sections of the second file; quotes are those of a shell. In the first file
//                                 the name stands alone, as it is
//   region = eu-west-1            names in any case; '=' or ':'
//   s3 =
//     max_queue_size = 100        indented: a setting of "s3", not of the profile
//   services = here
//   [services here]
//   s3 =
//     endpoint_url = https://...
struct AwsProfile {
  std::string name;
  bool found = false;
  bool own_keys = false;                        // aws_access_key_id is that of the first file
  std::map<std::string, std::string> values;    // a nested one as "s3.endpoint_url"
  std::map<std::string, std::string> services;  // of the section that the profile names: "s3.endpoint_url"

  // Empty if the profile does not say it.
  std::string value(const char* key) const;
};
// Errors: io, resource (a file of more than 1 MiB), invalid_argument (a line that the AWS CLI does not read
// either; a setting that is there twice; a section of services that is not there).
AwsProfile read_aws_profile();

// Where requests to "s3" or "sts" go: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the service's in the services of
// the profile, the profile's endpoint_url. Empty: to Amazon's host. AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true,
// or ignore_configured_endpoint_urls in the profile: none of them counts. Errors: invalid_argument: no such
// URL; endpoint_url is nested under "s3" of the profile, where the AWS tools do not look.
std::string aws_endpoint(const AwsProfile& profile, const std::string& service);

// AWS_REGION, AWS_DEFAULT_REGION, that of the profile, or us-east-1.
// Errors: invalid_argument, for anything but letters, digits and '-'.
std::string aws_region(const AwsProfile& profile);

// The end of the names of Amazon's hosts in a region: "amazonaws.com".
std::string aws_domain(const std::string& region);

}  // namespace shard
