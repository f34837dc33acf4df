// call_http() with libcurl.
#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <new>
#include <random>
#include <thread>

#include "base/text/quote.hpp"
#include "remote/http/address.hpp"
#include "remote/http/curl_library.hpp"
#include "remote/http/http_call.hpp"

namespace shard {
namespace {

constexpr std::size_t kMostReplyBytes = std::size_t{64} << 10U;
constexpr std::chrono::milliseconds kFirstCallPause{100};

struct CallEasy {
  void operator()(CURL* easy) const noexcept { curl_easy_cleanup(easy); }
};
struct CallLines {
  void operator()(curl_slist* lines) const noexcept { curl_slist_free_all(lines); }
};
using CallHeaders = std::unique_ptr<curl_slist, CallLines>;

CallHeaders call_headers(const HttpCall& call) {
  CallHeaders lines;
  const auto add = [&](const std::string& line) {
    curl_slist* const longer = curl_slist_append(lines.get(), line.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    static_cast<void>(lines.release());
    lines.reset(longer);
  };
  for (const std::string& line : call.headers) add(line);
  add("Expect:");
  return lines;
}

std::size_t on_reply(char* data, std::size_t, std::size_t size, void* context) {
  std::string& body = *static_cast<std::string*>(context);
  if (size > kMostReplyBytes - body.size()) return 0;
  try {
    body.append(data, size);
  } catch (const std::bad_alloc&) {
    return 0;
  }
  return size;
}

// Throws io, without an answer.
HttpReply call_once(const HttpCall& call) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  const std::unique_ptr<CURL, CallEasy> easy(ready == CURLE_OK ? curl_easy_init() : nullptr);
  if (!easy) throw Error(ErrorCode::resource, "libcurl cannot be initialised");
  const CallHeaders headers = call_headers(call);
  HttpReply reply;
  const auto set = [&](CURLoption option, auto value) {
    if (curl_easy_setopt(easy.get(), option, value) != CURLE_OK)
      throw Error(ErrorCode::unsupported,
                  "this libcurl lacks an option that is needed: version 7.88 or later has them all");
  };
  set(CURLOPT_URL, call.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_USERAGENT, "shardify");
  if (!call.proxy) set(CURLOPT_NOPROXY, "*");
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(call.connect_time.count()));
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(call.whole_time.count()));
  set(CURLOPT_HTTPHEADER, headers.get());
  if (!call.body.empty() || std::string_view(call.method) == "PUT") {
    set(CURLOPT_POSTFIELDS, call.body.c_str());
    set(CURLOPT_POSTFIELDSIZE, static_cast<long>(call.body.size()));
  }
  set(CURLOPT_CUSTOMREQUEST, call.method);
  set(CURLOPT_WRITEFUNCTION, &on_reply);
  set(CURLOPT_WRITEDATA, static_cast<void*>(&reply.body));
  const Certificates certificates = curl_certificates();
  require_certificates(certificates, call.url);
  if (!certificates.file.empty()) set(CURLOPT_CAINFO, certificates.file.c_str());
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  const CURLcode result = curl_easy_perform(easy.get());
  curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &reply.status);
  if (result == CURLE_WRITE_ERROR)
    throw Error(ErrorCode::io, fmt::format("{} answers with more than {} bytes", quoted(origin_of(call.url)),
                                           kMostReplyBytes));
  if (result != CURLE_OK)
    throw Error(ErrorCode::io, fmt::format("{} does not answer within {} ms: {}", quoted(origin_of(call.url)),
                                           call.whole_time.count(), curl_easy_strerror(result)));
  return reply;
}

}  // namespace

HttpReply call_http(const HttpCall& call) {
  std::minstd_rand random{std::random_device{}()};
  for (unsigned attempt = 1;; ++attempt) {
    const bool last = attempt >= call.attempts;
    try {
      HttpReply reply = call_once(call);
      if (last || (reply.status != 429 && reply.status < 500)) return reply;
    } catch (const Error& error) {
      if (last || !call.again_if_silent || error.code() != ErrorCode::io) throw;
    }
    const std::int64_t pause = kFirstCallPause.count() << std::min(attempt - 1, 3U);
    std::this_thread::sleep_for(
        std::chrono::milliseconds(std::uniform_int_distribution<std::int64_t>(pause / 2, pause)(random)));
  }
}

}  // namespace shard
