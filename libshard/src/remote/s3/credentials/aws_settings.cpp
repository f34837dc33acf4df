#include "remote/s3/credentials/aws_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/files/file.hpp"
#include "base/text/quote.hpp"
#include "base/text/words.hpp"
#include "remote/http/address.hpp"

namespace shard {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxSettingsBytes = std::uint64_t{1} << 20U;

using Settings = std::map<std::string, std::string>;
using Sections = std::map<std::string, Settings>;

// A file of settings: sections with "NAME = VALUE" lines. What is indented more than a name without a value
// belongs to that name.
class SettingsFile {
 public:
  // A file that is missing has no sections.
  explicit SettingsFile(fs::path path) : path_(std::move(path)) {
    std::vector<std::byte> bytes;
    try {
      bytes = read_file(path_, kMaxSettingsBytes);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::not_found) throw;
    }
    for (std::string_view text = as_text(bytes); !text.empty();) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      ++line_;
      take(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  const Settings* find(const std::string& section) const {
    const auto it = sections_.find(section);
    return it == sections_.end() ? nullptr : &it->second;
  }
  const Sections& sections() const noexcept { return sections_; }

 private:
  void take(std::string_view line) {
    const std::string_view text = trimmed(line);
    if (text.empty() || text.front() == '#' || text.front() == ';') return;
    const std::size_t indent = line.find(text);
    if (inside_ != nullptr && !above_.empty() && indent > above_indent_) return take_nested(text);
    if (text.front() == '[') return take_section(text);
    const std::size_t equals = text.find_first_of("=:");
    if (inside_ == nullptr || equals == std::string_view::npos || equals == 0)
      refuse(inside_ == nullptr ? "stands before the first [section]"
                                : "is neither a [section] nor NAME = VALUE");
    const std::string name = ascii_lower(trimmed(text.substr(0, equals)));
    const std::string value(trimmed(text.substr(equals + 1)));
    above_ = name;
    above_indent_ = indent;
    is_group_ = value.empty();
    set(name, value);
  }

  void take_section(std::string_view text) {
    const std::size_t end = text.rfind(']');  // what follows is not looked at
    if (end == std::string_view::npos) refuse("begins with '[' and has no ']'");
    inside_ = &sections_[std::string(trimmed(text.substr(1, end - 1)))];
    above_.clear();
  }

  // The second line of a value that is one text means nothing to us.
  void take_nested(std::string_view text) {
    const std::size_t equals = text.find_first_of("=:");
    if (!is_group_ || equals == std::string_view::npos) return;
    set(above_ + '.' + ascii_lower(trimmed(text.substr(0, equals))),
        std::string(trimmed(text.substr(equals + 1))));
  }

  void set(const std::string& name, const std::string& value) {
    const auto [there, is_new] = inside_->emplace(name, value);
    if (!is_new && there->second != value)
      refuse(fmt::format("gives {} of this section another value than before", quoted_excerpt(name)));
  }

  // Not what the line says: it may be a key.
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: line {} {}", quoted(path_), line_, what));
  }

  fs::path path_;
  std::uint64_t line_ = 0;
  Sections sections_;
  Settings* inside_ = nullptr;
  std::string above_;  // the last name that was not nested
  std::size_t above_indent_ = 0;
  bool is_group_ = false;  // it has no value of its own
};

// The words of a section's name, as a shell takes them apart. Nothing: a quote has no end.
std::optional<std::vector<std::string>> shell_words(std::string_view text) {
  std::vector<std::string> words;
  bool inside = false;
  char quote = '\0';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool escapes = c == '\\' && quote != '\'' && i + 1 < text.size() &&
                         (quote == '\0' || text[i + 1] == '"' || text[i + 1] == '\\');
    if (quote == '\0' && (c == ' ' || c == '\t')) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    if (escapes)
      words.back() += text[++i];
    else if (c == quote)
      quote = '\0';
    else if (quote == '\0' && (c == '"' || c == '\''))
      quote = c;
    else
      words.back() += c;
  }
  if (quote != '\0') return std::nullopt;
  return words;
}

// [KIND NAME] of the second file, as "[profile NAME]".
const Settings* find_named(const SettingsFile& file, const std::string& kind, const std::string& name) {
  for (const auto& [section, settings] : file.sections()) {
    const auto words = shell_words(section);
    if (words && words->size() == 2 && words->front() == kind && words->back() == name) return &settings;
  }
  return nullptr;
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
  const auto add = [&](const Settings* settings) {
    if (settings == nullptr) return;
    profile.found = true;
    profile.values.insert(settings->begin(), settings->end());
  };
  add(SettingsFile(shared_file("AWS_SHARED_CREDENTIALS_FILE", "credentials")).find(profile.name));
  profile.own_keys = profile.values.count("aws_access_key_id") != 0;
  const fs::path path = shared_file("AWS_CONFIG_FILE", "config");
  const SettingsFile config(path);
  const Settings* settings = find_named(config, "profile", profile.name);
  if (settings == nullptr && profile.name == "default") settings = config.find(profile.name);
  add(settings);
  const std::string services = profile.value("services");
  if (services.empty()) return profile;
  const Settings* const named = find_named(config, "services", services);
  if (named == nullptr)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the profile {} names the services {}, and {} has no section [services {}]",
                            quoted(profile.name), quoted_excerpt(services), quoted(path), services));
  profile.services = *named;
  return profile;
}

std::string aws_endpoint(const AwsProfile& profile, const std::string& service) {
  std::string upper = service;
  for (char& c : upper)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - ('a' - 'A'));
  std::string ignored = environment_variable("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
  if (ignored.empty()) ignored = profile.value("ignore_configured_endpoint_urls");
  if (ascii_lower(ignored) == "true") return {};
  std::string url = first_variable({("AWS_ENDPOINT_URL_" + upper).c_str(), "AWS_ENDPOINT_URL"});
  const std::string nested = service + ".endpoint_url";
  const auto of_service = profile.services.find(nested);
  if (url.empty() && of_service != profile.services.end()) url = of_service->second;
  if (url.empty() && !profile.value(nested.c_str()).empty())
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format(
            "the profile {} has endpoint_url indented under {}, where the AWS tools do not look: write it "
            "into a section [services NAME] and services = NAME into the profile, or set "
            "AWS_ENDPOINT_URL_{}",
            quoted(profile.name), service, upper));
  if (url.empty()) url = profile.value("endpoint_url");
  return url.empty() ? url : checked_url(url);
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
