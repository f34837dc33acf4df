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

// The profile AWS_PROFILE (or AWS_DEFAULT_PROFILE, or "default") of AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials) and of
// AWS_CONFIG_FILE (~/.aws/config). What both say counts as in the first.
struct AwsProfile {
  std::string name;
  bool found = false;
  std::map<std::string, std::string> values;

  // Empty if the profile does not say it.
  std::string value(const char* key) const;
};
// Errors: io, resource (a file of more than 1 MiB).
AwsProfile read_aws_profile();

// AWS_REGION, AWS_DEFAULT_REGION, that of the profile, or us-east-1. Errors: invalid_argument, for anything but letters, digits and '-'.
std::string aws_region(const AwsProfile& profile);

// The end of the names of Amazon's hosts in a region: "amazonaws.com".
std::string aws_domain(const std::string& region);

}  // namespace shard
