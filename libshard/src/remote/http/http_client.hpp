// HttpClient: requests to servers, many at a time: for ranges of objects, and with bodies. Only
// http_request.hpp and what includes it know libcurl.
//
//   read() --> pieces of at most 8 MiB --> queues --> threads(): kRequests of each kind at once --> memory
//                                            ^                          |                      or file
//                                            '-- again, after a pause --'   429, 5xx, resets, stalls
//
// What a server says is checked before its bytes count: the status, Content-Range, the size of the object,
// and that its ETag is the same for all pieces. Each failed request is repeated from the first byte that is
// missing, with growing pauses and jitter, until `patience` has passed without a new byte since the first
// attempt. So no call waits forever: what waits in a queue has no patience to lose, and what is waited for
// (reads into memory, requests without a body) does not queue behind copy_to() and uploads. Keys that expire
// are renewed by the threads that read, before a request, and once more if the server says that they have
// expired. Redirects to another server are followed without credentials.
//
// Errors: not_found (404, 410), io (refused, unreachable, TLS, no ranges, too many failures), corrupt
// (another size or ETag than before, lengths that contradict each other), unsupported (this build has no
// libcurl), cancelled. Each names the object. Secrets are in no message.
//
// Thread safe. In a child after fork() it works as a new client.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "remote/http/aws_keys.hpp"
#include "shard/error.hpp"

namespace shard {

// How a request is allowed. Empty: anonymous.
struct HttpAccess {
  std::string bearer;  // a token
  std::string sigv4;   // AWS Signature Version 4, as CURLOPT_AWS_SIGV4 takes it: "aws:amz:REGION:s3"
  std::shared_ptr<AwsKeys> keys;  // with sigv4
  bool empty() const noexcept { return bearer.empty() && sigv4.empty(); }
};

// An object on a server. Its requests remember the ETag and the size of the first answer.
class HttpObject {
 public:
  // `name` is for messages. `size_bytes` 0: not known.
  HttpObject(std::string url, std::string name, std::shared_ptr<const HttpAccess> access,
             std::uint64_t size_bytes = 0)
      : url_(std::move(url)), name_(std::move(name)), access_(std::move(access)), size_bytes_(size_bytes) {}

  const std::string& url() const noexcept { return url_; }
  const std::string& name() const noexcept { return name_; }
  const HttpAccess& access() const noexcept { return *access_; }
  // 0: not known yet.
  std::uint64_t size_bytes() const noexcept { return size_bytes_.load(std::memory_order_acquire); }

  // Compares an answer with those before. Throws corrupt. Thread safe. An empty ETag is not compared.
  void check_same(const std::string& etag, std::uint64_t size_bytes);
  // Of the first answer; empty: there was none, or it had none.
  std::string etag() const;

 private:
  std::string url_;
  std::string name_;
  std::shared_ptr<const HttpAccess> access_;
  std::atomic<std::uint64_t> size_bytes_;
  mutable std::mutex mutex_;
  std::string etag_;
};

// A request that is not a read by range: it may have a body, and its answer is read as a whole.
struct ObjectCall {
  std::string method;                            // GET, HEAD, PUT, POST, DELETE
  std::string query = {};                        // percent-encoded, sorted by name: "partNumber=1&uploadId=a"
  std::vector<std::string> headers = {};         // "Name: value"
  std::span<const std::byte> body = {};          // borrowed until the call returns
  std::vector<long> expected = {};               // statuses that are answers too, beside 2xx
  std::vector<std::string> expected_codes = {};  // errors of S3 that are, whatever their status
};
struct ObjectReply {
  long status = 0;
  std::string etag;               // as it is sent, with quotes
  std::string error_code;         // of an expected status that is an error of S3: "NoSuchUpload"
  bool encrypted = false;         // by keys of the server, so that the ETag is no digest
  std::uint64_t size_bytes = 0;   // of the object: Content-Length, or the total of Content-Range
  std::vector<std::byte> body{};  // of 2xx
};

// The server was reached, and does not give this object: 401, 403 and other answers that the next
// request would get too.
class HttpRefused : public Error {
 public:
  using Error::Error;
};

struct HttpStats {
  std::atomic<std::uint64_t> bytes{0};     // of bodies that counted
  std::atomic<std::uint64_t> sent{0};      // of bodies of calls that succeeded
  std::atomic<std::uint64_t> requests{0};  // that were sent
  std::atomic<std::uint64_t> retries{0};   // of them, after a failure
};

struct HttpJob;
class HttpEngine;

class HttpClient {
 public:
  static constexpr std::uint64_t kPieceBytes = std::uint64_t{8} << 20U;
  static constexpr std::size_t kRequests = 128;  // of each kind at a time, of all threads
  static constexpr std::size_t kMostThreads = 8;
  // One for two CPUs of this process, and at least two: receiving,
  // hashing and writing 2 to 3 GB takes one of them a second.
  static std::size_t threads();
  static std::size_t requests_of_thread() { return std::min(kRequests / threads(), std::size_t{32}); }

  HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;
  ~HttpClient();

  // The whole object, which has at most `max_bytes` (else resource).
  std::vector<std::byte> read_all(HttpObject& object, std::uint64_t max_bytes,
                                  const std::stop_token& stop = {});
  // Bytes from `begin` on, until `out` is full. Does not wait for requests of copy_to().
  void read(HttpObject& object, std::uint64_t begin, std::span<std::byte> out,
            const std::stop_token& stop = {});
  // Bytes from byte `begin` of an object on, which have arrived. Those of a piece come in order; pieces are
  // kPieceBytes each, from the beginning of what was asked for. Called by the client's threads, by one at a
  // time for each piece.
  using Arrived = std::function<void(std::uint64_t begin, std::span<const std::byte> bytes)>;
  // Writes `size_bytes` from `begin` to `fd`, at `offset`.
  // The errors of write are io, and those of `arrived` end it.
  void copy_to(HttpObject& object, std::uint64_t begin, std::uint64_t size_bytes, int fd,
               std::uint64_t offset, const std::stop_token& stop = {}, const Arrived& arrived = {});

  // Sends a request until it is answered by 2xx or an expected status; it must do no harm to send it twice.
  // `object` is where to, and what messages name. 409 is repeated too, and what a server says was damaged on
  // the way. Errors: as above; the answer has more than 16 MiB: resource.
  ObjectReply call(HttpObject& object, const ObjectCall& call, const std::stop_token& stop = {});

  const HttpStats& stats() const noexcept { return stats_; }

 private:
  void run(HttpJob& job, const std::stop_token& stop);
  HttpEngine& engine(std::size_t number);
  std::size_t least_busy() const;

  HttpStats stats_;
  // Each is started when it is first used; a child after fork() starts others.
  std::array<std::atomic<HttpEngine*>, kMostThreads> engines_{};
  std::atomic<std::size_t> turn_{0};  // which of them begins
};

}  // namespace shard
