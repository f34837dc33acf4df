// HttpEngine: the thread that moves all requests of a client, with its connections and the
// requests that wait or run.
#pragma once

#include <curl/curl.h>
#include <sys/types.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "remote/http/http_request.hpp"

namespace shard {

class HttpEngine {
 public:
  // Starts the thread. Errors: resource.
  explicit HttpEngine(HttpStats& stats);
  HttpEngine(const HttpEngine&) = delete;
  HttpEngine& operator=(const HttpEngine&) = delete;
  // Requests that are left end as cancelled.
  ~HttpEngine();

  // False in a child after fork(), which does not have the thread.
  bool of_this_process() const noexcept;
  // Every `step`-th piece of the job, from piece `first` on.
  // It must live until all of its pieces have finished. Thread safe.
  void submit(HttpJob& job, std::size_t first, std::size_t step);
  // That wait or run. Any thread may ask.
  std::size_t requests() const noexcept { return requests_.load(std::memory_order_relaxed); }
  // Looks at its requests at once: a job was cancelled. Thread safe.
  void wake() noexcept { curl_multi_wakeup(multi_); }

 private:
  // Requests of one kind: those that are waited for (HttpJob::urgent), or the others.
  // Neither waits for a place of the other.
  struct Lane {
    std::deque<std::unique_ptr<HttpRequest>> waiting;  // with mutex_
    std::size_t active = 0;                            // the thread only; at most requests_of_thread()
    bool has_place() const { return active < HttpClient::requests_of_thread(); }
  };

  void work();
  Lane& lane_of(const HttpRequest& request) { return request.job().urgent ? urgent_ : others_; }
  void start_waiting();
  void start(HttpRequest& request);
  int next_turn_ms();
  void done(CURL* easy, CURLcode result);
  void postpone(HttpRequest& request);
  void finish(HttpRequest& request, std::exception_ptr error);
  void drop_cancelled();
  std::unique_ptr<HttpRequest> take_out(HttpRequest& request);

  HttpShared shared_;
  const pid_t pid_;
  CURLM* multi_ = nullptr;
  std::vector<CURL*> idle_;
  std::vector<std::unique_ptr<HttpRequest>> active_;  // the thread only
  std::mutex mutex_;
  Lane urgent_, others_;
  std::atomic<std::size_t> requests_{0};
  std::atomic<bool> quit_{false};
  std::thread thread_;
};

}  // namespace shard
