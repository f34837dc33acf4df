// What the end of a request means: complete, again after a pause, or an error.
#include <fmt/format.h>

#include <algorithm>

#include "base/text/number.hpp"
#include "base/text/quote.hpp"
#include "base/text/words.hpp"
#include "base/text/xml.hpp"
#include "remote/http/address.hpp"
#include "remote/http/http_answer.hpp"
#include "remote/http/http_request.hpp"

namespace shard {
namespace {

constexpr std::chrono::milliseconds kFirstPause{100};
constexpr std::chrono::milliseconds kLongestPause{5000};
constexpr std::uint64_t kProgressBytes = 64 * 1024;  // new ones, after which pauses are short again
constexpr unsigned kMostFailures = 200;  // more than patience allows, where each attempt brings a few bytes
constexpr unsigned kUnreachable = 3;     // failures, while the server was never reached
constexpr unsigned kLeastWrites = 3;     // failures of a request with a body, however long they take
constexpr unsigned kLies = 3;            // answers that contradict themselves
constexpr unsigned kRedirects = 5;

}  // namespace

bool HttpRequest::ended(CURLcode result) {
  if (!answer_.checked) check_answer();
  if (answer_.error) std::rethrow_exception(answer_.error);
  return settle(result);
}

bool HttpRequest::settle(CURLcode result) {
  // A range is complete with its last byte, even if the connection was to bring more.
  const bool complete = success() && (result == CURLE_OK || (!whole() && begin_ == end_));
  if (answer_.received > 0 || complete) shared_.reached = true;
  if (news_ >= kProgressBytes) {
    failures_ = 0;
    news_ = 0;
  }
  if (!answer_.lie.empty()) {
    if (++lies_ >= kLies)
      throw Error(ErrorCode::corrupt, fmt::format("the answers for {} contradict themselves: {}",
                                                  quoted(job_.object.name()), answer_.lie));
    return again(answer_.lie);
  }
  if (job_.call != nullptr && result == CURLE_OK && (complete || expected())) return settle_call();
  if (complete) {
    if (whole() || begin_ == end_) return true;
    return again(fmt::format("{} bytes are missing at its end", end_ - begin_));
  }
  if (answer_.status >= 300 && answer_.status < 400 && result == CURLE_OK) return redirect();
  if (answer_.status >= 400) return refused();
  return failed(result);
}

// There is no whole answer.
bool HttpRequest::failed(CURLcode result) {
  switch (result) {
    case CURLE_SSL_CACERT_BADFILE:
      throw Error(
          ErrorCode::io,
          fmt::format("{}: the certificates of authorities cannot be read: {}; set SHARD_CA_BUNDLE to a "
                      "file with them",
                      quoted(job_.object.name()), reason(result)));
    case CURLE_PEER_FAILED_VERIFICATION:
      throw Error(
          ErrorCode::io,
          fmt::format("{}: the server's certificate is not trusted: {}; with an authority of your own set "
                      "SHARD_CA_BUNDLE to the file with its certificate",
                      quoted(job_.object.name()), reason(result)));
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_OUT_OF_MEMORY:
    case CURLE_BAD_FUNCTION_ARGUMENT:
      throw Error(ErrorCode::io, fmt::format("{} cannot be {}: {}", quoted(job_.object.name()),
                                             writes() ? "written" : "read", reason(result)));
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
      if (!shared_.reached && failures_ + 1 >= kUnreachable) give_up(reason(result));
      return again(reason(result));
    default:
      return again(reason(result));
  }
}

std::string HttpRequest::reason(CURLcode result) const {
  return message_[0] != '\0' ? std::string(message_) : std::string(curl_easy_strerror(result));
}

std::string HttpRequest::status_text() const {
  const std::string code = error_code_of(answer_.excerpt);
  return code.empty() ? fmt::format("HTTP {}", answer_.status)
                      : fmt::format("HTTP {}, {}", answer_.status, code);
}

// What to set, if S3 says that the bucket is in another region: with 301, 307 and 400,
// in a header or in the document.
std::string HttpRequest::region_hint() const {
  if (!job_.object.name().starts_with("s3://")) return {};
  const std::string region = answer_.region.empty() ? xml_text(answer_.excerpt, "Region") : answer_.region;
  if (!is_word(region, "-") || job_.object.access().sigv4 == "aws:amz:" + region + ":s3") return {};
  return fmt::format("; the bucket is in the region {}: set AWS_REGION={}", region, region);
}

// True once: keys that replace expired ones and are called expired too are an error.
bool HttpRequest::keys_expired() {
  const bool expired =
      keys_version_ != 0 && !renewed_ && error_code_of(answer_.excerpt).starts_with("ExpiredToken");
  renewed_ = renewed_ || expired;
  return expired;
}

bool HttpRequest::refused() {
  if (keys_expired()) {
    job_.ask_for_keys(keys_version_);
    return later(kKeysPause);
  }
  if (writes()) return refused_call();
  const std::string name = quoted(job_.object.name());
  const std::string status = status_text();
  if (may_succeed_later(answer_.status)) return again(status);
  switch (answer_.status) {
    case 404:
    case 410:
      throw Error(ErrorCode::not_found, fmt::format("{} does not exist on the server ({})", name, status));
    case 401:
    case 403:
      throw HttpRefused(
          ErrorCode::io,
          fmt::format(
              "access to {} is refused ({}): {}", name, status,
              job_.object.access().empty()
                  ? "it was asked for without credentials; docs/remote.md says where they are looked for"
                  : "check the credentials, that they have not expired, and what they may read"));
    case 416:
      throw Error(
          ErrorCode::corrupt,
          fmt::format("{} is shorter on the server than expected ({}): it was replaced or is not complete",
                      name, status));
    default:
      throw HttpRefused(ErrorCode::io,
                        fmt::format("the server refuses to send {} ({}){}", name, status, region_hint()));
  }
}

bool HttpRequest::redirect() {
  char* target = nullptr;
  curl_easy_getinfo(easy_, CURLINFO_REDIRECT_URL, &target);
  const std::string name = quoted(job_.object.name());
  if (target == nullptr) {
    std::string hint = region_hint();
    if (hint.empty() && job_.object.name().starts_with("s3://"))
      hint = ": check AWS_REGION, which must be the region of the bucket, and the endpoint";
    throw HttpRefused(ErrorCode::io, fmt::format("the server redirects {} ({}) and does not say where to{}",
                                                 name, status_text(), hint));
  }
  const std::string next = target;
  if (++redirects_ > kRedirects)
    throw HttpRefused(ErrorCode::io, fmt::format("{} is redirected more than {} times", name, kRedirects));
  if (url_.starts_with("https://") && !next.starts_with("https://"))
    throw HttpRefused(ErrorCode::io,
                      fmt::format("{} is redirected from https to an address without TLS: refused", name));
  if (origin_of(next) != origin_of(url_)) {
    if (!job_.object.access().sigv4.empty())
      throw Error(ErrorCode::io, fmt::format("{} is redirected to another server ({}), which does not get "
                                             "your credentials: check region and endpoint{}",
                                             name, status_text(), region_hint()));
    foreign_ = true;
  }
  url_ = next;
  return later(std::chrono::milliseconds(0));
}

void HttpRequest::give_up(const std::string& why) const {
  throw Error(ErrorCode::io, fmt::format("cannot {} {}: {} ({} attempts)", writes() ? "write" : "read",
                                         quoted(job_.object.name()), why, failures_ + 1));
}

bool HttpRequest::again(const std::string& why) {
  const auto now = Clock::now();
  // A body is sent from its beginning each time, so an attempt may take longer than all patience.
  const unsigned least = writes() ? kLeastWrites : 1;
  if (now >= *deadline_ && failures_ >= least) give_up(why);
  if (failures_ >= kMostFailures + static_cast<unsigned>(shared_.patience.count())) give_up(why);
  auto pause = std::min(kLongestPause, kFirstPause * (1 << std::min(failures_, 6U)));
  pause = std::chrono::milliseconds(
      std::uniform_int_distribution<std::int64_t>(pause.count() / 2, pause.count())(shared_.random));
  if (const auto asked = number_of<std::uint64_t>(answer_.retry_after))
    pause =
        std::max<std::chrono::milliseconds>(pause, std::chrono::seconds(std::min<std::uint64_t>(*asked, 30)));
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*deadline_ - now);
  if (failures_ >= least) pause = std::clamp(left, std::chrono::milliseconds(1), pause);
  ++failures_;
  return later(pause);
}

bool HttpRequest::later(std::chrono::milliseconds pause) {
  due_ = Clock::now() + pause;
  return false;
}

}  // namespace shard
