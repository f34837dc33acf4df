#include "remote/http/http_engine.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

#include "base/system/thread_name.hpp"
#include "base/text/quote.hpp"

namespace shard {
namespace {

std::exception_ptr cancelled_because(const char* why) {
  return std::make_exception_ptr(Error(ErrorCode::cancelled, why));
}

}  // namespace

HttpEngine::HttpEngine(HttpStats& stats) : shared_(stats), pid_(::getpid()) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  multi_ = ready == CURLE_OK ? curl_multi_init() : nullptr;
  if (multi_ == nullptr) throw Error(ErrorCode::resource, "libcurl cannot be initialised");
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, 2 * static_cast<long>(HttpClient::requests_of_thread()));
  try {
    thread_ = std::thread([this] { work(); });
  } catch (const std::system_error& error) {
    curl_multi_cleanup(multi_);
    throw Error(ErrorCode::resource, fmt::format("cannot start a thread for requests: {}", error.what()));
  }
}

HttpEngine::~HttpEngine() {
  quit_ = true;
  wake();
  thread_.join();
  for (CURL* const easy : idle_) curl_easy_cleanup(easy);
  curl_multi_cleanup(multi_);
}

bool HttpEngine::of_this_process() const noexcept { return pid_ == ::getpid(); }

void HttpEngine::submit(HttpJob& job, std::size_t first, std::size_t step) {
  std::deque<std::unique_ptr<HttpRequest>> made;
  for (std::size_t i = first; i < job.pieces.size(); i += step)
    made.push_back(std::make_unique<HttpRequest>(shared_, job, job.pieces[i].first, job.pieces[i].second));
  requests_ += made.size();
  {
    const std::lock_guard lock(mutex_);
    auto& waiting = (job.urgent ? urgent_ : others_).waiting;
    for (auto& request : made) waiting.push_back(std::move(request));
  }
  wake();
}

void HttpEngine::work() {
  name_thread("shard-http");
  while (!quit_) {
    start_waiting();
    int running = 0;
    curl_multi_perform(multi_, &running);
    int left = 0;
    while (CURLMsg* const message = curl_multi_info_read(multi_, &left))
      if (message->msg == CURLMSG_DONE) done(message->easy_handle, message->data.result);
    drop_cancelled();
    curl_multi_poll(multi_, nullptr, 0, next_turn_ms(), nullptr);
  }
  const std::exception_ptr over = cancelled_because("the data set was closed");
  while (!active_.empty()) finish(*active_.back(), over);
  const std::lock_guard lock(mutex_);
  for (const Lane* const lane : {&urgent_, &others_})
    for (const auto& request : lane->waiting) request->job().finish(over);
}

// The pauses of failed requests end at different times, so the queue is looked at as a whole.
void HttpEngine::start_waiting() {
  const auto now = HttpRequest::Clock::now();
  std::vector<std::unique_ptr<HttpRequest>> started;
  {
    const std::lock_guard lock(mutex_);
    for (Lane* const lane : {&urgent_, &others_})
      for (auto it = lane->waiting.begin(); it != lane->waiting.end() && lane->has_place();) {
        if ((*it)->due() > now) {
          ++it;
          continue;
        }
        started.push_back(std::move(*it));
        it = lane->waiting.erase(it);
        ++lane->active;
      }
  }
  for (auto& request : started) {
    HttpRequest& it = *request;
    active_.push_back(std::move(request));
    try {
      start(it);
    } catch (...) {
      finish(it, std::current_exception());
    }
  }
}

void HttpEngine::start(HttpRequest& request) {
  if (request.job().cancelled) throw Error(ErrorCode::cancelled, "the request was cancelled");
  if (idle_.empty()) {
    CURL* const easy = curl_easy_init();
    if (easy == nullptr) throw std::bad_alloc();
    idle_.push_back(easy);
  }
  CURL* const easy = idle_.back();
  idle_.pop_back();
  request.start(easy);
  if (const CURLMcode code = curl_multi_add_handle(multi_, easy); code != CURLM_OK)
    throw Error(ErrorCode::resource,
                fmt::format("libcurl cannot start a request for {}: {}", quoted(request.job().object.name()),
                            curl_multi_strerror(code)));
}

int HttpEngine::next_turn_ms() {
  const std::lock_guard lock(mutex_);
  auto turn = std::chrono::milliseconds(1000);
  for (const Lane* const lane : {&urgent_, &others_}) {
    if (!lane->has_place()) continue;
    for (const auto& request : lane->waiting)
      turn = std::min(turn, std::chrono::duration_cast<std::chrono::milliseconds>(request->due() -
                                                                                  HttpRequest::Clock::now()) +
                                std::chrono::milliseconds(1));
  }
  return static_cast<int>(std::max<std::int64_t>(0, turn.count()));
}

void HttpEngine::done(CURL* easy, CURLcode result) {
  HttpRequest& request = HttpRequest::of(easy);
  try {
    if (!request.ended(result)) return postpone(request);
  } catch (...) {
    return finish(request, std::current_exception());
  }
  finish(request, nullptr);
}

// Out of those that run, with its handle idle again.
std::unique_ptr<HttpRequest> HttpEngine::take_out(HttpRequest& request) {
  if (CURL* const easy = request.release()) {
    curl_multi_remove_handle(multi_, easy);
    idle_.push_back(easy);
  }
  const auto it = std::find_if(active_.begin(), active_.end(),
                               [&](const auto& other) { return other.get() == &request; });
  std::unique_ptr<HttpRequest> out = std::move(*it);
  active_.erase(it);
  --lane_of(*out).active;
  return out;
}

void HttpEngine::postpone(HttpRequest& request) {
  std::unique_ptr<HttpRequest> moved = take_out(request);
  const std::lock_guard lock(mutex_);
  auto& waiting = lane_of(*moved).waiting;
  waiting.push_front(std::move(moved));
}

// Ends the request, with its error or as complete.
void HttpEngine::finish(HttpRequest& request, std::exception_ptr error) {
  const std::unique_ptr<HttpRequest> ended = take_out(request);
  --requests_;
  ended->job().finish(std::move(error));
}

void HttpEngine::drop_cancelled() {
  const std::exception_ptr over = cancelled_because("the request was cancelled");
  std::vector<HttpRequest*> dropped;
  for (const auto& request : active_)
    if (request->job().cancelled) dropped.push_back(request.get());
  for (HttpRequest* const request : dropped) finish(*request, over);
  std::vector<std::unique_ptr<HttpRequest>> waiting;
  {
    const std::lock_guard lock(mutex_);
    for (Lane* const lane : {&urgent_, &others_}) {
      for (auto& request : lane->waiting)
        if (request->job().cancelled) waiting.push_back(std::move(request));
      std::erase(lane->waiting, nullptr);
    }
  }
  requests_ -= waiting.size();
  for (const auto& request : waiting) request->job().finish(over);
}

}  // namespace shard
