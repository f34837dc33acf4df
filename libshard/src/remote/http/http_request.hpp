// HttpRequest: a piece of an object, asked for again and again until it is complete,
// or until its error is final.
//
//   start() --> libcurl calls back with headers, bytes --> ended(): complete | again after a pause | throws
//
// Used by the thread of HttpEngine only. http_request.cpp has the options, http_end.cpp what the end of a
// request means, http_reply.cpp what is read from an answer, and object_call.cpp what is special of
// requests that are no reads.
#pragma once

#include <curl/curl.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>

#include "remote/http/certificates.hpp"
#include "remote/http/http_job.hpp"

namespace shard {

// What all requests of a client share.
struct HttpShared {
  explicit HttpShared(HttpStats& counted);

  HttpStats& stats;
  const std::chrono::seconds patience;  // how long failures of a request are repeated without a new byte
  const Certificates certificates;
  bool reached = false;  // a request has succeeded
  std::mt19937_64 random;
};

class HttpRequest {
 public:
  static constexpr std::chrono::milliseconds kKeysPause{50};  // while keys are renewed
  using Clock = std::chrono::steady_clock;

  // Bytes [begin, end) of the job's object; `end` 0: the whole object.
  HttpRequest(HttpShared& shared, HttpJob& job, std::uint64_t begin, std::uint64_t end);
  HttpRequest(const HttpRequest&) = delete;
  HttpRequest& operator=(const HttpRequest&) = delete;

  HttpJob& job() const noexcept { return job_; }
  // When it is to be started.
  Clock::time_point due() const;

  // Prepares `easy`, which is the request's until release(). Errors: unsupported (an old libcurl), resource.
  void start(CURL* easy);
  // After libcurl is done with it. True: it is complete. False: it is to be started again when it is due.
  // Throws its error.
  bool ended(CURLcode result);
  // The handle of start(), to be used for other requests; null: none.
  CURL* release() noexcept;
  // The request of a handle.
  static HttpRequest& of(CURL* easy);

 private:
  struct ListDeleter {
    void operator()(curl_slist* list) const noexcept { curl_slist_free_all(list); }
  };

  // An option of libcurl. Errors: unsupported.
  template <typename Value>
  void set(CURLoption option, Value value) {
    if (curl_easy_setopt(easy_, option, value) != CURLE_OK) refuse_old_library();
  }
  [[noreturn]] static void refuse_old_library();
  void set_options();
  void set_call();
  void set_access();
  void add_header(const std::string& line);

  static std::size_t on_header(char* data, std::size_t, std::size_t size, void* context);
  static std::size_t on_body(char* data, std::size_t, std::size_t size, void* context);
  void take_header(std::string_view line);
  void take(std::span<const std::byte> bytes);
  void check_answer();

  bool settle(CURLcode result);
  bool settle_call();
  bool refused();
  bool refused_call();
  bool keys_expired();
  bool redirect();
  bool failed(CURLcode result);
  bool again(const std::string& why);
  bool later(std::chrono::milliseconds pause);
  void start_patience();
  void count_news(std::uint64_t bytes);
  [[noreturn]] void give_up(const std::string& why) const;
  std::string reason(CURLcode result) const;
  std::string status_text() const;
  std::string region_hint() const;

  bool whole() const noexcept { return end_ == 0; }
  bool success() const noexcept;
  bool expected() const;
  bool writes() const noexcept;

  HttpShared& shared_;
  HttpJob& job_;
  std::uint64_t begin_;   // what is still missing
  std::uint64_t end_;     // 0: the whole object
  std::string url_;       // another one after a redirect
  bool foreign_ = false;  // redirected to another server: no credentials
  unsigned redirects_ = 0;
  unsigned failures_ = 0;   // since `news_` was reset
  std::uint64_t news_ = 0;  // bytes that no attempt had brought before
  std::uint64_t most_ = 0;  // of the whole object, in one attempt: each of them begins anew
  unsigned lies_ = 0;
  std::uint64_t keys_version_ = 0;  // of AwsKeys
  bool renewed_ = false;            // the server called keys expired
  Clock::time_point due_{};
  std::optional<Clock::time_point> deadline_;  // nothing before the first attempt

  // Of the request that runs.
  struct Answer {
    long status = 0;
    std::string etag, content_range, content_length, retry_after, encryption, region;
    bool checked = false;
    std::uint64_t received = 0;
    std::string excerpt;  // of the text of an error
    std::exception_ptr error;
    std::string lie;  // what contradicts itself in the answer
  };
  Answer answer_;
  CURL* easy_ = nullptr;
  std::unique_ptr<curl_slist, ListDeleter> headers_;
  char message_[CURL_ERROR_SIZE] = {};
};

}  // namespace shard
