// Requests that are no reads: their options, and what their end means.
// And HttpClient::call(), which sends them.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/bytes.hpp"
#include "base/digest/digests.hpp"
#include "base/text/number.hpp"
#include "base/text/quote.hpp"
#include "remote/http/http_answer.hpp"
#include "remote/http/http_engine.hpp"

namespace shard {
namespace {

constexpr std::uint64_t kMaxReplyBytes = std::uint64_t{16} << 20U;
constexpr std::size_t kSignedBytes = std::size_t{1} << 20U;  // larger bodies are signed without TLS only
constexpr long kAnswerSeconds = 30;                          // a server may work as long before it answers
constexpr long kContinueMilliseconds = 300;  // to wait for "100 Continue" before a body is sent

// With TLS nobody changes a body on its way, and Content-MD5 tells damage:
// its digest can be left out of the signature.
std::string payload_of(const HttpObject& object, const ObjectCall& call) {
  const bool large = call.body.size() > kSignedBytes;
  return large && object.url().starts_with("https://") ? "UNSIGNED-PAYLOAD" : sha256_hex(call.body);
}

template <class Value>
bool is_among(const std::vector<Value>& values, const Value& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

bool HttpRequest::expected() const {
  const std::string code = error_code_of(answer_.excerpt);
  if (code.starts_with("ExpiredToken")) return false;
  return is_among(job_.call->expected, answer_.status) || is_among(job_.call->expected_codes, code);
}

bool HttpRequest::writes() const noexcept {
  return job_.call != nullptr && job_.call->method != "GET" && job_.call->method != "HEAD";
}

// libcurl signs what it finds here: the method, the query and the headers.
void HttpRequest::set_call() {
  const ObjectCall& call = *job_.call;
  if (!call.query.empty()) set(CURLOPT_URL, (url_ + '?' + call.query).c_str());
  for (const std::string& header : call.headers) add_header(header);
  set(CURLOPT_LOW_SPEED_TIME, std::min(kAnswerSeconds, static_cast<long>(shared_.patience.count())));
  if (call.method == "GET") return;
  if (call.method == "HEAD") return set(CURLOPT_NOBODY, 1L);
  if (call.method != "DELETE") {
    const char* const body = call.body.empty() ? "" : reinterpret_cast<const char*>(call.body.data());
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(call.body.size()));
    set(CURLOPT_POSTFIELDS, body);
    set(CURLOPT_EXPECT_100_TIMEOUT_MS, kContinueMilliseconds);
    set(CURLOPT_UPLOAD_BUFFERSIZE, 512L * 1024);
    add_header("Content-Type: application/octet-stream");
  }
  set(CURLOPT_CUSTOMREQUEST, call.method.c_str());
}

// The answer is complete. S3 may say 200 before it fails, and then has an error in its document.
bool HttpRequest::settle_call() {
  const std::string failed = error_code_of(success() ? as_text(job_.document) : answer_.excerpt);
  if (success() && !failed.empty() && !is_among(job_.call->expected_codes, failed))
    return again(fmt::format("HTTP {}, {}", answer_.status, failed));
  ObjectReply& reply = job_.reply;
  reply.status = answer_.status;
  reply.etag = answer_.etag;
  reply.encrypted = !answer_.encryption.empty() && answer_.encryption != "AES256";
  reply.error_code = failed;
  reply.size_bytes = number_of<std::uint64_t>(answer_.content_length).value_or(0);
  if (const auto range = parse_content_range(answer_.content_range)) reply.size_bytes = range->total;
  if (success()) shared_.stats.sent += job_.call->body.size();
  return true;
}

bool HttpRequest::refused_call() {
  const std::string name = quoted(job_.object.name());
  const std::string status = status_text();
  const std::string code = error_code_of(answer_.excerpt);
  if (code == "BadDigest" || code == "XAmzContentSHA256Mismatch" || code == "InvalidDigest") {
    answer_.lie = "the server received other bytes than were sent (" + status + ")";
    return settle(CURLE_OK);
  }
  if (may_succeed_later(answer_.status) || answer_.status == 409 || code == "RequestTimeout")
    return again(status);
  switch (answer_.status) {
    case 404:
    case 410:
      throw Error(ErrorCode::not_found,
                  fmt::format("{} cannot be written ({}): check the name of the bucket and the endpoint",
                              name, status));
    case 401:
    case 403:
      throw Error(
          ErrorCode::io,
          fmt::format(
              "access to {} is refused ({}): {}", name, status,
              job_.object.access().empty()
                  ? "it was written without credentials; docs/remote.md says where they are looked for"
                  : "check the credentials, that they have not expired, and what they may write"));
    default:
      throw Error(ErrorCode::io,
                  fmt::format("the server refuses to write {} ({}){}", name, status, region_hint()));
  }
}

ObjectReply HttpClient::call(HttpObject& object, const ObjectCall& call, const std::stop_token& stop) {
  HttpJob job{object, HttpJob::Sink::document};
  job.call = &call;
  job.urgent = call.body.empty();
  if (!object.access().sigv4.empty() && !call.body.empty()) job.payload = payload_of(object, call);
  job.max_bytes = kMaxReplyBytes;
  job.pieces = {{0, 0}};
  run(job, stop);
  if (job.reply.status < 300) job.reply.body = std::move(job.document);
  return std::move(job.reply);
}

}  // namespace shard
