#include "remote/http/address.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text/quote.hpp"
#include "base/text/words.hpp"

namespace shard {
namespace {

constexpr std::string_view kSchemes[] = {"https://", "http://", "s3://", "hf://"};

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

bool is_url_byte(char c) { return c > ' ' && c < 0x7f && c != '"' && c != '<' && c != '>' && c != '\\'; }

// Scheme "://" authority, up to the path.
std::string_view authority_of(std::string_view url) {
  const std::size_t begin = url.find("://");
  if (begin == std::string_view::npos) return {};
  const std::string_view rest = url.substr(begin + 3);
  return rest.substr(0, std::min(rest.find_first_of("/?#"), rest.size()));
}

[[noreturn]] void refuse_url(const std::string& what) { throw Error(ErrorCode::invalid_argument, what); }

}  // namespace

bool is_remote(const std::filesystem::path& path) noexcept {
  return std::any_of(std::begin(kSchemes), std::end(kSchemes),
                     [&](std::string_view scheme) { return path.native().starts_with(scheme); });
}

std::string percent_encoded(std::string_view text, bool keep_slash) {
  std::string encoded;
  for (const char c : text) {
    if (is_unreserved(c) || (keep_slash && c == '/'))
      encoded += c;
    else
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

std::string origin_of(std::string_view url) {
  const std::string_view authority = authority_of(url);
  const std::string scheme = ascii_lower(url.substr(0, std::min(url.find("://"), url.size())));
  const std::string origin = scheme + "://" + ascii_lower(authority);
  const std::size_t bracket = std::min(authority.rfind(']'), authority.size());  // of an IPv6 address
  const bool has_port =
      authority.find(':', bracket == authority.size() ? 0 : bracket) != std::string_view::npos;
  return has_port ? origin : origin + (scheme == "https" ? ":443" : ":80");
}

std::string checked_url(std::string_view url) {
  const std::string_view authority = authority_of(url);
  if (authority.empty()) refuse_url(fmt::format("{} names no host: expected https://HOST/PATH", quoted(url)));
  if (authority.find('@') != std::string_view::npos)
    refuse_url(
        "a URL with a user or password in front of its host is not read, because it would appear in "
        "messages: remove what is before "
        "the '@'");
  if (url.find_first_of("?#") != std::string_view::npos)
    refuse_url(
        "a URL of a data set ends with its path: names of files are added to it, so it cannot have a query "
        "(after '?')");
  if (!std::all_of(url.begin(), url.end(), is_url_byte))
    refuse_url(fmt::format("{} is not a URL: write spaces and other special characters as %HH", quoted(url)));
  while (url.ends_with('/')) url.remove_suffix(1);
  return std::string(url);
}

}  // namespace shard
