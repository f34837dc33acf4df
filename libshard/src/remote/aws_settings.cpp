#include "remote/aws_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/file.hpp"
#include "base/quote.hpp"
#include "remote/text.hpp"

namespace shard {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxSettingsBytes = std::uint64_t{1} << 20U;

// "NAME = VALUE" lines of the sections. A file that is missing has none. True: a section is there.
bool read_sections(const fs::path& file, const std::vector<std::string>& sections,
                   std::map<std::string, std::string>& found) {
  std::vector<std::byte> bytes;
  try {
    bytes = read_file(file, kMaxSettingsBytes);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::not_found) return false;
    throw;
  }
  bool inside = false;
  bool there = false;
  std::string_view text = as_text(bytes);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[' && line.back() == ']') {
      const std::string_view name = trimmed(line.substr(1, line.size() - 2));
      inside = std::find(sections.begin(), sections.end(), name) != sections.end();
      there = there || inside;
      continue;
    }
    const std::size_t equals = line.find('=');
    if (!inside || equals == std::string_view::npos) continue;
    found.emplace(trimmed(line.substr(0, equals)), trimmed(line.substr(equals + 1)));
  }
  return there;
}

fs::path shared_file(const char* variable, const char* name) {
  const std::string set = environment_variable(variable);
  return set.empty() ? fs::path(environment_variable("HOME")) / ".aws" / name : fs::path(set);
}

}  // namespace

std::string environment_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string first_variable(std::initializer_list<const char*> names) {
  for (const char* const name : names)
    if (std::string value = environment_variable(name); !value.empty()) return value;
  return {};
}

std::string AwsProfile::value(const char* key) const {
  const auto it = values.find(key);
  return it == values.end() ? std::string() : it->second;
}

AwsProfile read_aws_profile() {
  AwsProfile profile;
  profile.name = first_variable({"AWS_PROFILE", "AWS_DEFAULT_PROFILE"});
  if (profile.name.empty()) profile.name = "default";
  const bool in_credentials = read_sections(shared_file("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
                                            {profile.name}, profile.values);
  std::vector<std::string> names{"profile " + profile.name};
  if (profile.name == "default") names.push_back(profile.name);
  profile.found =
      read_sections(shared_file("AWS_CONFIG_FILE", "config"), names, profile.values) || in_credentials;
  return profile;
}

std::string aws_region(const AwsProfile& profile) {
  std::string region = first_variable({"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (region.empty()) region = profile.value("region");
  if (region.empty()) region = "us-east-1";
  if (!is_word(region, "-"))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} is not a region: check AWS_REGION, AWS_DEFAULT_REGION and the profile {}",
                            quoted_excerpt(region), quoted(profile.name)));
  return region;
}

std::string aws_domain(const std::string& region) {
  return region.starts_with("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
}

}  // namespace shard
