// HttpClient with libcurl's multi interface.
#include <curl/curl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <random>
#include <system_error>
#include <thread>
#include <utility>

#include "base/file_io.hpp"
#include "base/quote.hpp"
#include "base/thread_name.hpp"
#include "remote/address.hpp"
#include "remote/http_answer.hpp"
#include "remote/http_client.hpp"

namespace shard {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kConnectTime{10};
constexpr std::chrono::seconds kStallTime{10};  // without kStallBytes per second
constexpr long kStallBytes = 1000;
constexpr std::chrono::milliseconds kFirstPause{100};
constexpr std::chrono::milliseconds kLongestPause{5000};
constexpr std::uint64_t kProgressBytes = 64 * 1024;  // a request that brought fewer counts as failed
constexpr unsigned kUnreachable = 3;                 // failures, while the server was never reached
constexpr unsigned kLies = 3;                        // answers that contradict themselves
constexpr unsigned kRedirects = 5;
constexpr std::size_t kExcerptBytes = 2048;  // of the text of an error

// How long failures are repeated without a new byte.
std::chrono::seconds patience() {
  const char* const text = std::getenv("SHARD_HTTP_PATIENCE");
  const long seconds = text == nullptr ? 0 : std::strtol(text, nullptr, 10);
  return std::chrono::seconds(seconds >= 1 && seconds <= 3600 ? seconds : 60);
}

// A file with certificates that the environment names; null: the system's.
const char* certificates() {
  for (const char* name : {"SHARD_CA_BUNDLE", "AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"})
    if (const char* const path = std::getenv(name); path != nullptr && *path != '\0') return path;
  return nullptr;
}

struct Slist {
  curl_slist* list = nullptr;
  Slist() = default;
  Slist(const Slist&) = delete;
  Slist& operator=(const Slist&) = delete;
  ~Slist() { curl_slist_free_all(list); }
  void add(const std::string& line) {
    curl_slist* const longer = curl_slist_append(list, line.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    list = longer;
  }
};

}  // namespace

// What one call waits for.
struct HttpClient::Job {
  enum class Sink { memory, file, document };

  HttpObject& object;
  Sink sink = Sink::memory;
  std::uint64_t begin = 0;            // of the range; memory and file begin there
  std::byte* memory = nullptr;        // sink memory
  int fd = -1;                        // sink file
  std::uint64_t offset = 0;           // sink file
  std::vector<std::byte> document{};  // sink document: the whole object
  std::uint64_t max_bytes = 0;        // sink document
  bool urgent = false;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> pieces{};

  std::atomic<bool> cancelled{false};
  std::mutex mutex{};
  std::condition_variable over{};
  std::size_t left = 0;  // pieces
  std::exception_ptr error{};

  void finish(std::exception_ptr why) {
    const std::lock_guard lock(mutex);
    if (why && !error) error = std::move(why);
    if (error) cancelled = true;  // the other pieces are dropped
    if (--left == 0) over.notify_all();
  }
};

// The thread, its connections, and the requests that wait or run.
class HttpClient::Engine {
 public:
  explicit Engine(HttpStats& stats) : stats_(stats), patience_(patience()) {
    static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
    multi_ = ready == CURLE_OK ? curl_multi_init() : nullptr;
    if (multi_ == nullptr) throw Error(ErrorCode::resource, "libcurl cannot be initialised");
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(kRequests));
    if (const char* const path = certificates()) certificates_ = path;
    try {
      thread_ = std::thread([this] { work(); });
    } catch (const std::system_error& error) {
      curl_multi_cleanup(multi_);
      throw Error(ErrorCode::resource, fmt::format("cannot start a thread for requests: {}", error.what()));
    }
  }
  ~Engine() {
    quit_ = true;
    curl_multi_wakeup(multi_);
    thread_.join();
    for (CURL* const easy : idle_) curl_easy_cleanup(easy);
    curl_multi_cleanup(multi_);
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  bool of_this_process() const noexcept { return pid_ == ::getpid(); }

  void submit(Job& job) {
    std::deque<std::unique_ptr<Request>> made;
    for (const auto& [begin, end] : job.pieces) {
      auto request = std::make_unique<Request>(job, begin, end);
      request->deadline = Clock::now() + patience_;
      made.push_back(std::move(request));
    }
    {
      const std::lock_guard lock(mutex_);
      if (job.urgent)
        for (auto it = made.rbegin(); it != made.rend(); ++it) waiting_.push_front(std::move(*it));
      else
        for (auto& request : made) waiting_.push_back(std::move(request));
    }
    curl_multi_wakeup(multi_);
  }
  void wake() noexcept { curl_multi_wakeup(multi_); }

 private:
  // A piece and, while it runs, its request.
  struct Request {
    Request(Job& of, std::uint64_t first, std::uint64_t last)
        : job(of), begin(first), end(last), url(of.object.url()) {}
    Job& job;
    std::uint64_t begin;   // what is still missing
    std::uint64_t end;     // 0: the whole object
    std::string url;       // another one after a redirect
    bool foreign = false;  // redirected to another server: no credentials
    unsigned redirects = 0;
    unsigned failures = 0;  // since the last new byte
    unsigned lies = 0;
    Clock::time_point due{};
    Clock::time_point deadline{};

    // Of the request that runs.
    CURL* easy = nullptr;
    std::unique_ptr<Slist> headers;
    HttpClient::Engine* engine = nullptr;
    long status = 0;
    std::string etag, content_range, content_length, retry_after;
    bool checked = false;
    std::uint64_t received = 0;
    std::string excerpt;  // of the text of an error
    std::exception_ptr error;
    std::string lie;  // what contradicts itself in the answer
    char message[CURL_ERROR_SIZE] = {};

    bool whole() const noexcept { return end == 0; }
  };

  void work() {
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
    for (auto& request : active_) stop(*request);
    const std::exception_ptr over =
        std::make_exception_ptr(Error(ErrorCode::cancelled, "the data set was closed"));
    for (auto& request : active_) request->job.finish(over);
    const std::lock_guard lock(mutex_);
    for (auto& request : waiting_) request->job.finish(over);
  }

  // The pauses of failed requests end at different times, so the queue is looked at as a whole.
  void start_waiting() {
    const auto now = Clock::now();
    std::vector<std::unique_ptr<Request>> started;
    {
      const std::lock_guard lock(mutex_);
      for (auto it = waiting_.begin(); it != waiting_.end() && active_.size() + started.size() < kRequests;) {
        if ((*it)->due > now) {
          ++it;
          continue;
        }
        started.push_back(std::move(*it));
        it = waiting_.erase(it);
      }
    }
    for (auto& request : started) {
      Request& it = *request;
      active_.push_back(std::move(request));
      try {
        start(it);
      } catch (...) {
        it.error = std::current_exception();
        finish(it);
      }
    }
  }

  int next_turn_ms() {
    const std::lock_guard lock(mutex_);
    auto turn = std::chrono::milliseconds(1000);
    if (active_.size() < kRequests)
      for (const auto& request : waiting_)
        turn = std::min(turn,
                        std::chrono::duration_cast<std::chrono::milliseconds>(request->due - Clock::now()) +
                            std::chrono::milliseconds(1));
    return static_cast<int>(std::max<std::int64_t>(0, turn.count()));
  }

  void start(Request& request) {
    if (request.job.cancelled) throw Error(ErrorCode::cancelled, "the request was cancelled");
    if (idle_.empty()) {
      CURL* const easy = curl_easy_init();
      if (easy == nullptr) throw std::bad_alloc();
      idle_.push_back(easy);
    }
    request.easy = idle_.back();
    idle_.pop_back();
    curl_easy_reset(request.easy);
    request.engine = this;
    request.status = 0;
    request.etag.clear();
    request.content_range.clear();
    request.content_length.clear();
    request.retry_after.clear();
    request.excerpt.clear();
    request.lie.clear();
    request.checked = false;
    request.received = 0;
    request.message[0] = '\0';
    request.headers = std::make_unique<Slist>();
    if (request.whole()) request.job.document.clear();
    set_options(request);
    ++stats_.requests;
    if (request.failures > 0) ++stats_.retries;
    curl_multi_add_handle(multi_, request.easy);
  }

  void set_options(Request& request) {
    CURL* const easy = request.easy;
    const auto set = [&](CURLoption option, auto value) {
      if (curl_easy_setopt(easy, option, value) != CURLE_OK)
        throw Error(ErrorCode::unsupported,
                    "this libcurl lacks an option that is needed: version 7.88 or later has them all");
    };
    set(CURLOPT_PRIVATE, static_cast<void*>(&request));
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_PATH_AS_IS, 1L);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_HTTP_VERSION,
        static_cast<long>(CURL_HTTP_VERSION_1_1));  // a connection per request is faster than streams in one
    set(CURLOPT_FOLLOWLOCATION, 0L);
    set(CURLOPT_USERAGENT, "shardify");
    set(CURLOPT_BUFFERSIZE, 512L * 1024);
    set(CURLOPT_CONNECTTIMEOUT_MS,
        static_cast<long>(std::chrono::milliseconds(std::min(kConnectTime, patience_)).count()));
    set(CURLOPT_LOW_SPEED_LIMIT, kStallBytes);
    set(CURLOPT_LOW_SPEED_TIME,
        static_cast<long>(std::min(kStallTime, std::max(patience_ / 3, std::chrono::seconds(1))).count()));
    set(CURLOPT_ERRORBUFFER, request.message);
    set(CURLOPT_HEADERFUNCTION, &on_header);
    set(CURLOPT_HEADERDATA, static_cast<void*>(&request));
    set(CURLOPT_WRITEFUNCTION, &on_body);
    set(CURLOPT_WRITEDATA, static_cast<void*>(&request));
    if (!certificates_.empty()) set(CURLOPT_CAINFO, certificates_.c_str());
    const std::string range = fmt::format("{}-{}", request.begin, request.end - 1);
    if (!request.whole()) set(CURLOPT_RANGE, range.c_str());
    const HttpAccess& access = request.job.object.access();
    if (request.foreign || access.empty()) return;
    if (!access.bearer.empty()) {
      request.headers->add("Authorization: Bearer " + access.bearer);
    } else {
      set(CURLOPT_AWS_SIGV4, access.sigv4.c_str());
      set(CURLOPT_USERNAME, access.key_id.c_str());
      set(CURLOPT_PASSWORD, access.secret.c_str());
      if (!access.session.empty()) request.headers->add("x-amz-security-token: " + access.session);
    }
    if (request.headers->list != nullptr) set(CURLOPT_HTTPHEADER, request.headers->list);
  }

  static std::size_t on_header(char* data, std::size_t, std::size_t size, void* context) {
    Request& request = *static_cast<Request*>(context);
    std::string_view line(data, size);
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r' || line.back() == ' '))
      line.remove_suffix(1);
    const std::size_t colon = line.find(':');
    if (line.starts_with("HTTP/")) {  // of the final answer: those of 100 Continue come before
      request.etag.clear();
      request.content_range.clear();
      request.content_length.clear();
      return size;
    }
    if (colon == std::string_view::npos) return size;
    const std::string_view name = line.substr(0, colon);
    std::string_view value = line.substr(colon + 1);
    while (value.starts_with(' ')) value.remove_prefix(1);
    if (equals_ignoring_case(name, "etag")) request.etag = value.substr(0, 256);
    if (equals_ignoring_case(name, "content-range")) request.content_range = value.substr(0, 256);
    if (equals_ignoring_case(name, "content-length")) request.content_length = value.substr(0, 32);
    if (equals_ignoring_case(name, "retry-after")) request.retry_after = value.substr(0, 32);
    return size;
  }

  // Exceptions do not pass through libcurl: they are kept, and 0 ends the request.
  static std::size_t on_body(char* data, std::size_t, std::size_t size, void* context) {
    Request& request = *static_cast<Request*>(context);
    try {
      request.engine->take(request, std::as_bytes(std::span(data, size)));
    } catch (...) {
      request.error = std::current_exception();
    }
    return request.error || !request.lie.empty() ? 0 : size;
  }

  void take(Request& request, std::span<const std::byte> bytes) {
    if (!request.checked) check_answer(request);
    if (request.status != 200 && request.status != 206) {
      const std::size_t room = kExcerptBytes - std::min(kExcerptBytes, request.excerpt.size());
      request.excerpt.append(reinterpret_cast<const char*>(bytes.data()), std::min(room, bytes.size()));
      return;
    }
    if (!request.lie.empty()) return;
    Job& job = request.job;
    if (job.sink == Job::Sink::document) {
      if (bytes.size() > job.max_bytes - job.document.size())
        throw Error(ErrorCode::resource,
                    fmt::format("{} has more than {} bytes", quoted(job.object.name()), job.max_bytes));
      job.document.insert(job.document.end(), bytes.begin(), bytes.end());
    } else {
      if (bytes.size() > request.end - request.begin) {
        request.lie = "the server sends more bytes than its Content-Range says";
        return;
      }
      if (job.sink == Job::Sink::memory)
        std::memcpy(job.memory + (request.begin - job.begin), bytes.data(), bytes.size());
      else
        pwrite_all(job.fd, bytes, job.offset + (request.begin - job.begin), job.object.name());
      request.begin += bytes.size();
    }
    request.received += bytes.size();
    stats_.bytes += bytes.size();
  }

  // Status and headers, before the first byte counts.
  void check_answer(Request& request) {
    request.checked = true;
    curl_easy_getinfo(request.easy, CURLINFO_RESPONSE_CODE, &request.status);
    if (request.status != 200 && request.status != 206) return;
    reached_ = true;
    HttpObject& object = request.job.object;
    if (request.whole()) {
      if (request.status == 206) request.lie = "the server answers 206 (a part) to a request for the whole";
      return;
    }
    // Some servers ignore ranges: the whole object will do where it was asked for. Others send the range with this status.
    if (request.status == 200 && request.content_range.empty()) {
      const auto length = whole_number(request.content_length);
      if (request.begin != 0 || !length || *length != request.end)
        throw Error(ErrorCode::io,
                    fmt::format("the server of {} answers a request for a range with the whole object (HTTP "
                                "200): it must support range "
                                "requests; copy the data set to a folder, or serve it by another server",
                                quoted(object.name())));
      return object.check_same(request.etag, *length);
    }
    const auto range = parse_content_range(request.content_range);
    if (!range || range->begin != request.begin || range->end != request.end) {
      if (range) object.check_same(request.etag, range->total);
      request.lie = fmt::format("bytes {}-{} were requested, the answer has Content-Range {}", request.begin,
                                request.end - 1, quoted_excerpt(request.content_range));
      return;
    }
    object.check_same(request.etag, range->total);
  }

  void done(CURL* easy, CURLcode result) {
    Request* request = nullptr;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, reinterpret_cast<char**>(&request));
    Request& it = *request;
    try {
      if (!it.checked) check_answer(it);
      if (!it.error && settle(it, result)) return;
    } catch (...) {
      it.error = std::current_exception();
    }
    finish(it);
  }

  // True: it goes on, later. False: it is complete. Throws what ends it.
  bool settle(Request& request, CURLcode result) {
    const bool success = request.status == 200 || request.status == 206;
    if (request.received > 0 || (success && result == CURLE_OK)) reached_ = true;
    if (request.received >= kProgressBytes || (result == CURLE_OK && success && request.lie.empty())) {
      request.failures = 0;
      request.deadline = Clock::now() + patience_;
    }
    if (!request.lie.empty()) {
      if (++request.lies >= kLies)
        throw Error(ErrorCode::corrupt, fmt::format("the answers for {} contradict themselves: {}",
                                                    quoted(request.job.object.name()), request.lie));
      return again(request, request.lie);
    }
    if (result == CURLE_OK && success) {
      if (request.whole() || request.begin == request.end) return false;
      return again(request, fmt::format("{} bytes are missing at its end", request.end - request.begin));
    }
    if (request.status >= 300 && request.status < 400 && result == CURLE_OK) return redirect(request);
    if (request.status >= 400) return refused(request);
    switch (result) {
      case CURLE_PEER_FAILED_VERIFICATION:
      case CURLE_SSL_CACERT_BADFILE:
        throw Error(
            ErrorCode::io,
            fmt::format("{}: the server's certificate is not trusted: {}; with an authority of your own set "
                        "SHARD_CA_BUNDLE to the file with its certificate",
                        quoted(request.job.object.name()), reason(request, result)));
      case CURLE_URL_MALFORMAT:
      case CURLE_UNSUPPORTED_PROTOCOL:
      case CURLE_OUT_OF_MEMORY:
      case CURLE_BAD_FUNCTION_ARGUMENT:
        throw Error(ErrorCode::io, fmt::format("{} cannot be read: {}", quoted(request.job.object.name()),
                                               reason(request, result)));
      case CURLE_COULDNT_RESOLVE_HOST:
      case CURLE_COULDNT_CONNECT:
      case CURLE_SSL_CONNECT_ERROR:
        if (!reached_ && request.failures + 1 >= kUnreachable) give_up(request, reason(request, result));
        return again(request, reason(request, result));
      default:
        return again(request, reason(request, result));
    }
  }

  static std::string reason(const Request& request, CURLcode result) {
    return request.message[0] != '\0' ? std::string(request.message)
                                      : std::string(curl_easy_strerror(result));
  }

  static std::string status_text(const Request& request) {
    const std::string code = error_code_of(request.excerpt);
    return code.empty() ? fmt::format("HTTP {}", request.status)
                        : fmt::format("HTTP {}, {}", request.status, code);
  }

  bool refused(Request& request) {
    const std::string name = quoted(request.job.object.name());
    const std::string status = status_text(request);
    switch (request.status) {
      case 404:
      case 410:
        throw Error(ErrorCode::not_found, fmt::format("{} does not exist on the server ({})", name, status));
      case 401:
      case 403:
        throw Error(
            ErrorCode::io,
            fmt::format(
                "access to {} is refused ({}): {}", name, status,
                request.job.object.access().empty()
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
        return again(request, status);
      default:
        throw Error(ErrorCode::io, fmt::format("the server refuses to send {} ({})", name, status));
    }
  }

  bool redirect(Request& request) {
    char* target = nullptr;
    curl_easy_getinfo(request.easy, CURLINFO_REDIRECT_URL, &target);
    const std::string name = quoted(request.job.object.name());
    if (target == nullptr)
      throw Error(ErrorCode::io, fmt::format("the server redirects {} ({}) and does not say where to", name,
                                             status_text(request)));
    const std::string next = target;
    if (++request.redirects > kRedirects)
      throw Error(ErrorCode::io, fmt::format("{} is redirected more than {} times", name, kRedirects));
    if (request.url.starts_with("https://") && !next.starts_with("https://"))
      throw Error(ErrorCode::io,
                  fmt::format("{} is redirected from https to an address without TLS: refused", name));
    if (origin_of(next) != origin_of(request.url)) {
      if (!request.job.object.access().sigv4.empty())
        throw Error(ErrorCode::io, fmt::format("{} is redirected to another server ({}), which does not get "
                                               "your credentials: check region and "
                                               "endpoint",
                                               name, status_text(request)));
      request.foreign = true;
    }
    request.url = next;
    return later(request, std::chrono::milliseconds(0));
  }

  [[noreturn]] void give_up(const Request& request, const std::string& why) const {
    throw Error(ErrorCode::io, fmt::format("cannot read {}: {} ({} attempts)",
                                           quoted(request.job.object.name()), why, request.failures + 1));
  }

  bool again(Request& request, const std::string& why) {
    const auto now = Clock::now();
    if (now >= request.deadline && request.failures > 0) give_up(request, why);
    auto pause = std::min(kLongestPause, kFirstPause * (1 << std::min(request.failures, 6U)));
    pause = std::chrono::milliseconds(
        std::uniform_int_distribution<std::int64_t>(pause.count() / 2, pause.count())(random_));
    if (const auto asked = whole_number(request.retry_after))
      pause = std::max<std::chrono::milliseconds>(pause,
                                                  std::chrono::seconds(std::min<std::uint64_t>(*asked, 30)));
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(request.deadline - now);
    pause = std::clamp(left, std::chrono::milliseconds(1), pause);
    ++request.failures;
    return later(request, pause);
  }

  bool later(Request& request, std::chrono::milliseconds pause) {
    stop(request);
    request.due = Clock::now() + pause;
    const auto it = std::find_if(active_.begin(), active_.end(),
                                 [&](const auto& other) { return other.get() == &request; });
    std::unique_ptr<Request> moved = std::move(*it);
    active_.erase(it);
    const std::lock_guard lock(mutex_);
    waiting_.push_front(std::move(moved));
    return true;
  }

  void stop(Request& request) {
    if (request.easy == nullptr) return;
    curl_multi_remove_handle(multi_, request.easy);
    idle_.push_back(std::exchange(request.easy, nullptr));
  }

  // Ends the request, with its error or as complete.
  void finish(Request& request) {
    stop(request);
    const auto it = std::find_if(active_.begin(), active_.end(),
                                 [&](const auto& other) { return other.get() == &request; });
    const std::unique_ptr<Request> ended = std::move(*it);
    active_.erase(it);
    ended->job.finish(ended->error);
  }

  void drop_cancelled() {
    std::vector<Request*> dropped;
    for (const auto& request : active_)
      if (request->job.cancelled) dropped.push_back(request.get());
    for (Request* const request : dropped) {
      request->error = std::make_exception_ptr(Error(ErrorCode::cancelled, "the request was cancelled"));
      finish(*request);
    }
    std::vector<std::unique_ptr<Request>> waiting;
    {
      const std::lock_guard lock(mutex_);
      for (auto& request : waiting_)
        if (request->job.cancelled) waiting.push_back(std::move(request));
      std::erase(waiting_, nullptr);
    }
    for (const auto& request : waiting)
      request->job.finish(std::make_exception_ptr(Error(ErrorCode::cancelled, "the request was cancelled")));
  }

  HttpStats& stats_;
  const std::chrono::seconds patience_;
  const pid_t pid_ = ::getpid();
  std::string certificates_;
  CURLM* multi_ = nullptr;
  std::vector<CURL*> idle_;
  std::vector<std::unique_ptr<Request>> active_;  // the thread only
  bool reached_ = false;                          // a request has succeeded
  std::mt19937_64 random_{std::random_device{}()};
  std::mutex mutex_;
  std::deque<std::unique_ptr<Request>> waiting_;
  std::atomic<bool> quit_{false};
  std::thread thread_;
};

HttpClient::HttpClient() = default;

HttpClient::~HttpClient() {
  // A child after fork() has not got the thread: what belongs to it stays.
  Engine* const engine = engine_.load(std::memory_order_acquire);
  if (engine != nullptr && engine->of_this_process()) delete engine;
}

HttpClient::Engine& HttpClient::engine() {
  Engine* current = engine_.load(std::memory_order_acquire);
  if (current != nullptr && current->of_this_process()) return *current;
  auto made = std::make_unique<Engine>(stats_);
  if (engine_.compare_exchange_strong(current, made.get(), std::memory_order_acq_rel)) return *made.release();
  return *current;  // another thread was faster
}

void HttpClient::run(Job& job, const std::stop_token& stop) {
  job.left = job.pieces.size();
  if (job.left == 0) return;
  Engine& engine = this->engine();
  engine.submit(job);
  {
    const std::stop_callback cancel(stop, [&] {
      job.cancelled = true;
      engine.wake();
    });
    std::unique_lock lock(job.mutex);
    job.over.wait(lock, [&] { return job.left == 0; });
  }
  if (job.error) std::rethrow_exception(job.error);
}

std::vector<std::byte> HttpClient::read_all(HttpObject& object, std::uint64_t max_bytes,
                                            const std::stop_token& stop) {
  Job job{object, Job::Sink::document};
  job.max_bytes = max_bytes;
  job.urgent = true;
  job.pieces = {{0, 0}};
  run(job, stop);
  return std::move(job.document);
}

namespace {

std::vector<std::pair<std::uint64_t, std::uint64_t>> pieces_of(std::uint64_t begin, std::uint64_t size) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> pieces;
  for (std::uint64_t at = begin; at < begin + size; at += HttpClient::kPieceBytes)
    pieces.emplace_back(at, std::min(at + HttpClient::kPieceBytes, begin + size));
  return pieces;
}

}  // namespace

void HttpClient::read(HttpObject& object, std::uint64_t begin, std::span<std::byte> out,
                      const std::stop_token& stop) {
  Job job{object, Job::Sink::memory};
  job.begin = begin;
  job.memory = out.data();
  job.urgent = true;
  job.pieces = pieces_of(begin, out.size());
  run(job, stop);
}

void HttpClient::copy_to(HttpObject& object, std::uint64_t begin, std::uint64_t size_bytes, int fd,
                         std::uint64_t offset, const std::stop_token& stop) {
  Job job{object, Job::Sink::file};
  job.begin = begin;
  job.fd = fd;
  job.offset = offset;
  job.pieces = pieces_of(begin, size_bytes);
  run(job, stop);
}

}  // namespace shard
