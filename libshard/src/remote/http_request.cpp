// The options of a request, and what its end means: complete, again after a pause, or an error.
#include "remote/http_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

#include "base/quote.hpp"
#include "base/sha256.hpp"
#include "remote/address.hpp"
#include "remote/curl_library.hpp"
#include "remote/http_answer.hpp"

namespace shard {
namespace {

constexpr std::chrono::seconds kConnectTime{10};
constexpr std::chrono::seconds kStallTime{10};  // without kStallBytes per second
constexpr long kStallBytes = 1000;
constexpr std::chrono::milliseconds kFirstPause{100};
constexpr std::chrono::milliseconds kLongestPause{5000};
constexpr std::uint64_t kProgressBytes = 64 * 1024;  // a request that brought fewer counts as failed
constexpr std::chrono::milliseconds kKeysPause{50};  // while keys are renewed
constexpr unsigned kUnreachable = 3;                 // failures, while the server was never reached
constexpr unsigned kLeastWrites = 3;  // failures of a request with a body, however long they take
constexpr unsigned kLies = 3;         // answers that contradict themselves
constexpr unsigned kRedirects = 5;

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
    : shared_(shared),
      job_(job),
      begin_(begin),
      end_(end),
      url_(job.object.url()),
      deadline_(Clock::now() + shared.patience) {}

HttpRequest& HttpRequest::of(CURL* easy) {
  HttpRequest* request = nullptr;
  curl_easy_getinfo(easy, CURLINFO_PRIVATE, reinterpret_cast<char**>(&request));
  return *request;
}

HttpRequest::Clock::time_point HttpRequest::due() const {
  return job_.expired_keys == 0 ? due_ : std::max(due_, Clock::now() + kKeysPause);
}

CURL* HttpRequest::release() noexcept { return std::exchange(easy_, nullptr); }

void HttpRequest::start(CURL* easy) {
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
  // Refused for a handle that still has its buffer, because its last host was not found: it goes on with that one.
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
  add_header("x-amz-content-sha256: " +
             (job_.payload.empty() ? std::string(kSha256OfNothing) : job_.payload));
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

bool HttpRequest::ended(CURLcode result) {
  if (!answer_.checked) check_answer();
  if (answer_.error) std::rethrow_exception(answer_.error);
  return settle(result);
}

bool HttpRequest::settle(CURLcode result) {
  // A range is complete with its last byte, even if the connection was to bring more.
  const bool complete = success() && (result == CURLE_OK || (!whole() && begin_ == end_));
  if (answer_.received > 0 || complete) shared_.reached = true;
  if (answer_.received >= kProgressBytes || (complete && answer_.lie.empty())) {
    failures_ = 0;
    deadline_ = Clock::now() + shared_.patience;
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
    case 408:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
      return again(status);
    default:
      throw HttpRefused(ErrorCode::io, fmt::format("the server refuses to send {} ({})", name, status));
  }
}

bool HttpRequest::redirect() {
  char* target = nullptr;
  curl_easy_getinfo(easy_, CURLINFO_REDIRECT_URL, &target);
  const std::string name = quoted(job_.object.name());
  if (target == nullptr)
    throw HttpRefused(ErrorCode::io, fmt::format("the server redirects {} ({}) and does not say where to",
                                                 name, status_text()));
  const std::string next = target;
  if (++redirects_ > kRedirects)
    throw HttpRefused(ErrorCode::io, fmt::format("{} is redirected more than {} times", name, kRedirects));
  if (url_.starts_with("https://") && !next.starts_with("https://"))
    throw HttpRefused(ErrorCode::io,
                      fmt::format("{} is redirected from https to an address without TLS: refused", name));
  if (origin_of(next) != origin_of(url_)) {
    if (!job_.object.access().sigv4.empty())
      throw Error(ErrorCode::io, fmt::format("{} is redirected to another server ({}), which does not get "
                                             "your credentials: check region and endpoint",
                                             name, status_text()));
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
  if (now >= deadline_ && failures_ >= least) give_up(why);
  auto pause = std::min(kLongestPause, kFirstPause * (1 << std::min(failures_, 6U)));
  pause = std::chrono::milliseconds(
      std::uniform_int_distribution<std::int64_t>(pause.count() / 2, pause.count())(shared_.random));
  if (const auto asked = whole_number(answer_.retry_after))
    pause =
        std::max<std::chrono::milliseconds>(pause, std::chrono::seconds(std::min<std::uint64_t>(*asked, 30)));
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - now);
  if (failures_ >= least) pause = std::clamp(left, std::chrono::milliseconds(1), pause);
  ++failures_;
  return later(pause);
}

bool HttpRequest::later(std::chrono::milliseconds pause) {
  due_ = Clock::now() + pause;
  return false;
}

}  // namespace shard
