#include "remote/object_stores.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/file.hpp"
#include "base/quote.hpp"
#include "remote/address.hpp"

namespace shard {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 20U;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string first_of(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (std::string value = variable(name); !value.empty()) return value;
  return {};
}

[[noreturn]] void refuse_address(std::string_view address, const std::string& why) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", quoted(address), why));
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

using Section = std::map<std::string, std::string>;

// "NAME = VALUE" lines of [section]. A file that is missing has none.
Section read_section(const fs::path& file, const std::vector<std::string>& sections) {
  Section found;
  std::vector<std::byte> bytes;
  try {
    bytes = read_file(file, kMaxFileBytes);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::not_found) return found;
    throw;
  }
  bool inside = false;
  std::string_view text = as_text(bytes);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[' && line.back() == ']') {
      const std::string_view name = trimmed(line.substr(1, line.size() - 2));
      inside = std::find(sections.begin(), sections.end(), name) != sections.end();
      continue;
    }
    const std::size_t equals = line.find('=');
    if (!inside || equals == std::string_view::npos) continue;
    found.emplace(trimmed(line.substr(0, equals)), trimmed(line.substr(equals + 1)));
  }
  return found;
}

fs::path home() { return variable("HOME"); }

// What the shared files say about the profile, config first.
Section read_profile() {
  const std::string set = first_of({"AWS_PROFILE", "AWS_DEFAULT_PROFILE"});
  const std::string name = set.empty() ? "default" : set;
  const std::string credentials = variable("AWS_SHARED_CREDENTIALS_FILE");
  const std::string config = variable("AWS_CONFIG_FILE");
  Section profile =
      read_section(credentials.empty() ? home() / ".aws" / "credentials" : fs::path(credentials), {name});
  profile.merge(read_section(config.empty() ? home() / ".aws" / "config" : fs::path(config),
                             {"profile " + name, name == "default" ? "default" : "profile " + name}));
  return profile;
}

HttpAccess s3_access(const Section& profile, const std::string& region, std::string_view address) {
  HttpAccess access;
  access.sigv4 = "aws:amz:" + region + ":s3";
  access.key_id = variable("AWS_ACCESS_KEY_ID");
  access.secret = variable("AWS_SECRET_ACCESS_KEY");
  access.session = variable("AWS_SESSION_TOKEN");
  if (access.key_id.empty() || access.secret.empty()) {
    const auto value = [&](const char* name) {
      const auto it = profile.find(name);
      return it == profile.end() ? std::string() : it->second;
    };
    access.key_id = value("aws_access_key_id");
    access.secret = value("aws_secret_access_key");
    access.session = value("aws_session_token");
  }
  if (access.key_id.empty() || access.secret.empty())
    refuse_address(address,
                   "no keys were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE to a "
                   "profile with "
                   "keys; SHARD_S3_ANONYMOUS=1 reads public buckets without keys");
  // They become a header and part of one: no line of their own.
  for (const std::string* text : {&access.key_id, &access.secret, &access.session})
    if (!std::all_of(text->begin(), text->end(), [](char c) { return c > ' ' && c < 0x7f; }))
      refuse_address(
          address, "its keys have bytes that no key has: check the variables AWS_... and the shared profile");
  return access;
}

bool is_word(std::string_view text, std::string_view further) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           further.find(c) != std::string_view::npos;
  });
}

}  // namespace

StorePlace resolve_s3(std::string_view address) {
  std::string_view path = address.substr(std::string_view("s3://").size());
  while (path.ends_with('/')) path.remove_suffix(1);
  const std::size_t slash = std::min(path.find('/'), path.size());
  const std::string bucket(path.substr(0, slash));
  const std::string key = percent_encoded(path.substr(slash), true);  // begins with '/', or is empty
  if (!is_word(bucket, ".-_") || bucket.size() > 255) refuse_address(address, "expected s3://BUCKET/PREFIX");
  const Section profile = read_profile();
  const auto value = [&](const char* name) {
    const auto it = profile.find(name);
    return it == profile.end() ? std::string() : it->second;
  };
  std::string region = first_of({"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (region.empty()) region = value("region");
  if (region.empty()) region = "us-east-1";
  if (!is_word(region, "-"))
    refuse_address(address, fmt::format("{} is not a region", quoted_excerpt(region)));
  std::string endpoint = first_of({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
  if (endpoint.empty()) endpoint = value("endpoint_url");
  const bool amazon = endpoint.empty();
  endpoint = amazon ? fmt::format("https://s3.{}.amazonaws.com", region) : checked_url(endpoint);
  const std::string style = variable("SHARD_S3_STYLE");
  const bool in_host = style.empty() ? amazon && bucket.find('.') == std::string::npos : style == "virtual";
  StorePlace place;
  if (in_host)
    place.url = std::string(endpoint).insert(endpoint.find("://") + 3, bucket + '.') + key;
  else
    place.url = endpoint + '/' + bucket + key;
  const std::string anonymous = variable("SHARD_S3_ANONYMOUS");
  if (anonymous.empty() || anonymous == "0") place.access = s3_access(profile, region, address);
  return place;
}

StorePlace resolve_hf(std::string_view address) {
  const std::string_view path = address.substr(std::string_view("hf://").size());
  const std::size_t owner = path.find('/');
  const std::size_t name = owner == std::string_view::npos ? owner : path.find('/', owner + 1);
  if (path.substr(0, std::min(owner, path.size())) != "datasets" || name == std::string_view::npos)
    refuse_address(address, "expected hf://datasets/OWNER/NAME/FOLDER");
  const std::size_t end = std::min(path.find('/', name + 1), path.size());
  std::string repository(path.substr(name + 1, end - name - 1));
  std::string revision = "main";
  if (const std::size_t at = repository.find('@'); at != std::string::npos) {
    revision = repository.substr(at + 1);
    repository.resize(at);
  }
  const std::string_view user = path.substr(owner + 1, name - owner - 1);
  if (!is_word(user, "-_.") || !is_word(repository, "-_.") || revision.empty())
    refuse_address(address, "expected hf://datasets/OWNER/NAME[@REVISION]/FOLDER");
  const std::string set = variable("HF_ENDPOINT");
  StorePlace place;
  place.url =
      fmt::format("{}/datasets/{}/{}/resolve/{}{}", set.empty() ? "https://huggingface.co" : checked_url(set),
                  user, repository, percent_encoded(revision), percent_encoded(path.substr(end), true));
  while (place.url.ends_with('/')) place.url.pop_back();
  place.access.bearer = variable("HF_TOKEN");
  if (place.access.bearer.empty()) {
    const std::string folder = variable("HF_HOME");
    try {
      const auto bytes = read_file(
          (folder.empty() ? home() / ".cache" / "huggingface" : fs::path(folder)) / "token", kMaxFileBytes);
      place.access.bearer = trimmed(as_text(bytes));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::not_found) throw;
    }
  }
  const std::string& token = place.access.bearer;
  if (!std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 0x7f; }))
    refuse_address(address, "the token of HF_TOKEN, or of the file with it, has bytes that no token has");
  return place;
}

}  // namespace shard
