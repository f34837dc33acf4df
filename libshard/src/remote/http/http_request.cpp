// The options of a request.
#include "remote/http/http_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

#include "base/digest/digests.hpp"
#include "base/text/quote.hpp"
#include "remote/http/curl_library.hpp"

namespace shard {
namespace {

constexpr std::chrono::seconds kConnectTime{10};
constexpr std::chrono::seconds kStallTime{10};  // without kStallBytes per second
constexpr long kStallBytes = 1000;

std::chrono::seconds patience_of_environment() {
  const char* const text = std::getenv("SHARD_HTTP_PATIENCE");
  const long seconds = text == nullptr ? 0 : std::strtol(text, nullptr, 10);
  return std::chrono::seconds(seconds >= 1 && seconds <= 3600 ? seconds : 60);
}

}  // namespace

HttpShared::HttpShared(HttpStats& counted)
    : stats(counted),
      patience(patience_of_environment()),
      certificates(curl_certificates()),
      random(std::random_device{}()) {}

HttpRequest::HttpRequest(HttpShared& shared, HttpJob& job, std::uint64_t begin, std::uint64_t end)
    : shared_(shared), job_(job), begin_(begin), end_(end), url_(job.object.url()) {}

HttpRequest& HttpRequest::of(CURL* easy) {
  HttpRequest* request = nullptr;
  curl_easy_getinfo(easy, CURLINFO_PRIVATE, reinterpret_cast<char**>(&request));
  return *request;
}

HttpRequest::Clock::time_point HttpRequest::due() const {
  return job_.expired_keys == 0 ? due_ : std::max(due_, Clock::now() + kKeysPause);
}

CURL* HttpRequest::release() noexcept { return std::exchange(easy_, nullptr); }

// It starts with the first attempt. What a request waits for its turn after a pause, the server has not done.
void HttpRequest::start_patience() {
  const auto now = Clock::now();
  deadline_ = deadline_ ? *deadline_ + std::max(now - due_, Clock::duration::zero()) : now + shared_.patience;
}

void HttpRequest::start(CURL* easy) {
  start_patience();
  easy_ = easy;
  curl_easy_reset(easy_);
  answer_ = {};
  message_[0] = '\0';
  headers_.reset();
  if (whole()) job_.document.clear();
  set_options();
  ++shared_.stats.requests;
  if (failures_ > 0) ++shared_.stats.retries;
}

void HttpRequest::refuse_old_library() {
  throw Error(ErrorCode::unsupported,
              "this libcurl lacks an option that is needed: version 7.88 or later has them all");
}

void HttpRequest::set_options() {
  set(CURLOPT_PRIVATE, static_cast<void*>(this));
  set(CURLOPT_URL, url_.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_PATH_AS_IS, 1L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_HTTP_VERSION,
      static_cast<long>(CURL_HTTP_VERSION_1_1));  // a connection per request is faster than streams in one
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_USERAGENT, "shardify");
  // Refused for a handle that still has its buffer, because its last host was not found:
  // it goes on with that one.
  curl_easy_setopt(easy_, CURLOPT_BUFFERSIZE, 512L * 1024);
  set(CURLOPT_CONNECTTIMEOUT_MS,
      static_cast<long>(std::chrono::milliseconds(std::min(kConnectTime, shared_.patience)).count()));
  set(CURLOPT_LOW_SPEED_LIMIT, kStallBytes);
  set(CURLOPT_LOW_SPEED_TIME,
      static_cast<long>(
          std::min(kStallTime, std::max(shared_.patience / 3, std::chrono::seconds(1))).count()));
  set(CURLOPT_ERRORBUFFER, message_);
  set(CURLOPT_HEADERFUNCTION, &on_header);
  set(CURLOPT_HEADERDATA, static_cast<void*>(this));
  set(CURLOPT_WRITEFUNCTION, &on_body);
  set(CURLOPT_WRITEDATA, static_cast<void*>(this));
  require_certificates(shared_.certificates, url_);
  if (!shared_.certificates.file.empty()) set(CURLOPT_CAINFO, shared_.certificates.file.c_str());
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  const std::string range = fmt::format("{}-{}", begin_, end_ - 1);
  if (!whole()) set(CURLOPT_RANGE, range.c_str());
  if (job_.call != nullptr) set_call();
  set_access();
  if (headers_) set(CURLOPT_HTTPHEADER, headers_.get());
}

void HttpRequest::set_access() {
  const HttpAccess& access = job_.object.access();
  if (foreign_ || access.empty()) return;
  if (!access.bearer.empty()) return add_header("Authorization: Bearer " + access.bearer);
  set(CURLOPT_AWS_SIGV4, access.sigv4.c_str());
  // libcurl 7.88 signs this header, but does not make it, and Amazon insists on it.
  add_header("x-amz-content-sha256: " + (job_.payload.empty() ? sha256_hex({}) : job_.payload));
  const SigningKeys keys = access.keys->current();
  keys_version_ = keys.version;
  set(CURLOPT_USERNAME, keys.id.c_str());
  set(CURLOPT_PASSWORD, keys.secret.c_str());
  if (!keys.session.empty()) add_header("x-amz-security-token: " + keys.session);
}

void HttpRequest::add_header(const std::string& line) {
  curl_slist* const longer = curl_slist_append(headers_.get(), line.c_str());
  if (longer == nullptr) throw std::bad_alloc();
  static_cast<void>(headers_.release());
  headers_.reset(longer);
}

bool HttpRequest::success() const noexcept {
  if (job_.call != nullptr) return answer_.status >= 200 && answer_.status < 300;
  return answer_.status == 200 || answer_.status == 206;
}

}  // namespace shard
