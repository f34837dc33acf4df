// TinyServer: an HTTP server on the loopback interface. A function of the test answers each request, on a
// thread of its own, and may wait. A connection is closed after its answer.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace shard::testing {

class TinyServer {
 public:
  struct Request {
    std::string method, path;
    std::uint64_t begin = 0, end = 0;  // of its Range, half-open; 0, 0: none
  };
  // Sends bytes of the answer. False: the client or the server is gone.
  using Send = std::function<bool(std::string_view)>;
  using Answer = std::function<void(const Request&, const Send&)>;

  explicit TinyServer(Answer answer) : answer_(std::move(answer)) {
    listening_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (listening_ < 0 || ::bind(listening_, any, size) != 0 || ::listen(listening_, 512) != 0 ||
        ::getsockname(listening_, any, &size) != 0)
      throw std::runtime_error("cannot listen on the loopback interface");
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    accepting_ = std::thread([this] { accept_all(); });
  }
  TinyServer(const TinyServer&) = delete;
  TinyServer& operator=(const TinyServer&) = delete;
  ~TinyServer() {
    ended_ = true;
    ::shutdown(listening_, SHUT_RDWR);
    accepting_.join();
    {
      const std::lock_guard lock(mutex_);
      for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
    }
    for (std::thread& thread : threads_) thread.join();
    ::close(listening_);
  }

  const std::string& url() const noexcept { return url_; }
  // A function that waits should look.
  bool ended() const noexcept { return ended_; }

  // The head of an answer with a part of an object of `total` bytes.
  static std::string partial(const Request& request, std::uint64_t total) {
    return "HTTP/1.1 206 Partial Content\r\nConnection: close\r\nContent-Length: " +
           std::to_string(request.end - request.begin) + "\r\nContent-Range: bytes " +
           std::to_string(request.begin) + '-' + std::to_string(request.end - 1) + '/' +
           std::to_string(total) + "\r\n\r\n";
  }
  // A whole answer.
  static std::string whole(std::string_view status, std::string_view body) {
    return "HTTP/1.1 " + std::string(status) +
           "\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
           std::string(body);
  }

 private:
  void accept_all() {
    while (!ended_) {
      const int fd = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) continue;
      {
        const std::lock_guard lock(mutex_);
        open_.insert(fd);
      }
      threads_.emplace_back([this, fd] { serve(fd); });
    }
  }

  void serve(int fd) {
    std::string head;
    char piece[4096];
    while (head.find("\r\n\r\n") == std::string::npos) {
      const ssize_t got = ::recv(fd, piece, sizeof piece, 0);
      if (got <= 0) break;
      head.append(piece, static_cast<std::size_t>(got));
    }
    if (head.find("\r\n\r\n") != std::string::npos)
      answer_(parse(head), [&](std::string_view bytes) {
        while (!bytes.empty()) {
          const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
          if (sent <= 0) return false;
          bytes.remove_prefix(static_cast<std::size_t>(sent));
        }
        return !ended();
      });
    const std::lock_guard lock(mutex_);
    open_.erase(fd);
    ::close(fd);
  }

  static Request parse(const std::string& head) {
    Request request;
    const std::size_t space = head.find(' ');
    request.method = head.substr(0, space);
    request.path = head.substr(space + 1, head.find(' ', space + 1) - space - 1);
    const std::string_view name = "Range: bytes=";
    const std::size_t range = head.find(name);
    if (range == std::string::npos) return request;
    const char* const end = head.data() + head.size();
    const char* const dash = std::from_chars(head.data() + range + name.size(), end, request.begin).ptr;
    std::from_chars(dash + 1, end, request.end);
    ++request.end;
    return request;
  }

  Answer answer_;
  int listening_ = -1;
  std::string url_;
  std::atomic<bool> ended_{false};
  std::mutex mutex_;
  std::set<int> open_;
  std::vector<std::thread> threads_;  // of `accepting_` until it has ended
  std::thread accepting_;
};

}  // namespace shard::testing
