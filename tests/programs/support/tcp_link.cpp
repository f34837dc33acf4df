// A TCP proxy that behaves like a line: latency, a rate that all connections share, and bits that flip on the
// way. For tests and benchmarks of data sets on servers, where the kernel has no netem.
//
//   tcp_link PORT [latency_ms=10] [mb_per_s=125] [flip_every=10000000] [seed=1]
//
// Connects to 127.0.0.1:PORT for each connection it accepts. Prints its own port. Ends when its standard
// input ends; then it prints the bytes that came from the server and the number of bytes that it changed.
//
//   latency_ms   in each direction, also of the three packets by which TCP connects, before the first byte
//   mb_per_s     of each direction; 0: without limit. A byte leaves when those before it have left
//   flip_every   one bit in so many bytes from the server, at random places; 0: none
//
//   client <── out ── Way ◀── Line (rate, latency, flips) ◀── in ── server
//
// and the same in the other direction.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <list>
#include <random>
#include <string>
#include <system_error>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

struct Options {
  double latency_ms = 0;
  double mb_per_s = 0;
  std::uint64_t flip_every = 0;
  std::uint64_t seed = 1;
};

// One direction for all connections.
class Line {
 public:
  Line(const Options& options, bool flips)
      : latency_(std::chrono::duration_cast<Clock::duration>(
            std::chrono::duration<double, std::milli>(options.latency_ms))),
        bytes_per_second_(options.mb_per_s * 1e6),
        flip_every_(flips ? options.flip_every : 0),
        random_(options.seed) {
    if (flip_every_ > 0) next_flip_ = distance_(random_);
  }

  // When these bytes arrive, which are sent now.
  Time send(std::vector<std::byte>& bytes) {
    total_ += bytes.size();
    flip(bytes);
    const Time now = Clock::now();
    if (bytes_per_second_ > 0) {
      const std::chrono::duration<double> takes(static_cast<double>(bytes.size()) / bytes_per_second_);
      free_ = std::max(free_, now) + std::chrono::duration_cast<Clock::duration>(takes);
    } else {
      free_ = now;
    }
    return free_ + latency_;
  }
  Clock::duration latency() const { return latency_; }
  // Bytes are not taken from a sender before the line can have them: else they would wait here and not there.
  bool busy() const { return free_ > Clock::now() + std::chrono::milliseconds(2); }
  std::uint64_t total() const { return total_; }
  std::uint64_t flipped() const { return flipped_; }

 private:
  void flip(std::vector<std::byte>& bytes) {
    if (flip_every_ == 0) return;
    std::uint64_t at = next_flip_;
    for (; at < bytes.size(); at += 1 + distance_(random_), ++flipped_)
      bytes[at] ^= static_cast<std::byte>(1U << (random_() % 8));
    next_flip_ = at - bytes.size();
  }

  Clock::duration latency_;
  double bytes_per_second_;
  std::uint64_t flip_every_;
  std::mt19937_64 random_;
  std::geometric_distribution<std::uint64_t> distance_{
      flip_every_ > 0 ? 1.0 / static_cast<double>(flip_every_) : 1.0};
  std::uint64_t next_flip_ = 0;
  std::uint64_t total_ = 0;
  std::uint64_t flipped_ = 0;
  Time free_{};
};

// What is on its way from one socket to another.
struct Way {
  struct Piece {
    Time arrives;
    std::vector<std::byte> bytes;  // empty: the end
  };
  // As much as TCP would have on the way: four times 125 MB/s over 20 ms.
  static constexpr std::size_t kMost = 10'000'000;

  int from = -1;
  int to = -1;
  Time open;  // nothing arrives before
  std::deque<Piece> pieces{};
  std::size_t done = 0;    // of the first piece
  std::size_t queued = 0;  // bytes
  bool ended = false;      // the sender has ended
  bool closed = false;     // and the receiver knows

  // False: the connection broke.
  bool read(Line& line) {
    std::vector<std::byte> bytes(std::size_t{256} << 10U);
    const ssize_t got = ::recv(from, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    bytes.resize(static_cast<std::size_t>(got));
    ended = got == 0;
    queued += bytes.size();
    const Time arrives = std::max(open, line.send(bytes));
    pieces.push_back({arrives, std::move(bytes)});
    return true;
  }
  bool write() {
    while (!pieces.empty() && pieces.front().arrives <= Clock::now()) {
      Piece& piece = pieces.front();
      if (piece.bytes.empty()) {
        ::shutdown(to, SHUT_WR);
        closed = true;
      } else {
        const ssize_t sent =
            ::send(to, piece.bytes.data() + done, piece.bytes.size() - done, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0) return errno == EAGAIN || errno == EINTR;
        done += static_cast<std::size_t>(sent);
        if (done < piece.bytes.size()) return true;
        queued -= piece.bytes.size();
      }
      pieces.pop_front();
      done = 0;
    }
    return true;
  }
  bool wants_to_read(const Line& line) const { return !ended && queued < kMost && !line.busy(); }
  bool wants_to_write() const { return !pieces.empty() && pieces.front().arrives <= Clock::now(); }
};

struct Connection {
  Way up;
  Way down;
};

int checked(int value, const char* what) {
  if (value < 0) throw std::system_error(errno, std::generic_category(), what);
  return value;
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

class Proxy {
 public:
  Proxy(std::uint16_t port, const Options& options)
      : server_(loopback(port)), up_(options, false), down_(options, true) {
    listener_ = checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), "socket");
    const sockaddr_in any = loopback(0);
    checked(::bind(listener_, reinterpret_cast<const sockaddr*>(&any), sizeof(any)), "bind");
    checked(::listen(listener_, 512), "listen");
    sockaddr_in mine{};
    socklen_t size = sizeof(mine);
    checked(::getsockname(listener_, reinterpret_cast<sockaddr*>(&mine), &size), "getsockname");
    std::printf("%u\n", ntohs(mine.sin_port));
    std::fflush(stdout);
  }

  void run() {
    while (step()) {
    }
    std::printf("%llu %llu\n", static_cast<unsigned long long>(down_.total()),
                static_cast<unsigned long long>(down_.flipped()));
  }

 private:
  bool step() {
    std::vector<pollfd> polled{{STDIN_FILENO, POLLIN, 0}, {listener_, POLLIN, 0}};
    std::vector<Way*> ways;
    Time next = Clock::now() + std::chrono::seconds(1);
    for (Connection& one : connections_) {
      for (const auto& [way, line] : {std::pair{&one.up, &up_}, std::pair{&one.down, &down_}}) {
        const bool read = way->wants_to_read(*line);
        if (!way->pieces.empty() && !way->wants_to_write())
          next = std::min(next, way->pieces.front().arrives);
        if (!read && !way->ended && way->queued < Way::kMost)
          next = std::min(next, Clock::now() + std::chrono::milliseconds(1));
        polled.push_back({way->from, static_cast<short>(read ? POLLIN : 0), 0});
        polled.push_back({way->to, static_cast<short>(way->wants_to_write() ? POLLOUT : 0), 0});
        ways.push_back(way);
      }
    }
    const auto wait = std::max<Clock::duration>(next - Clock::now(), Clock::duration::zero());
    const timespec timeout{wait / std::chrono::seconds(1),
                           (wait % std::chrono::seconds(1)) / std::chrono::nanoseconds(1)};
    if (::ppoll(polled.data(), polled.size(), &timeout, nullptr) < 0 && errno != EINTR) checked(-1, "ppoll");
    char word = 0;
    if ((polled[0].revents & (POLLIN | POLLHUP)) != 0 && ::read(STDIN_FILENO, &word, 1) == 0) return false;
    std::vector<Way*> broken;
    for (std::size_t i = 0; i < ways.size(); ++i) {
      Line& line = i % 2 == 0 ? up_ : down_;
      const short readable = polled[2 + 2 * i].revents;
      bool fine = true;
      if ((readable & POLLIN) != 0)
        fine = ways[i]->read(line);
      else if ((readable & (POLLERR | POLLNVAL)) != 0)
        fine = false;
      if (fine) fine = ways[i]->write();
      if (!fine) broken.push_back(ways[i]);
    }
    connections_.remove_if([&](Connection& one) {
      const bool over = (one.up.closed && one.down.closed) ||
                        std::any_of(broken.begin(), broken.end(),
                                    [&](Way* way) { return way == &one.up || way == &one.down; });
      if (over) {
        ::close(one.up.from);
        ::close(one.up.to);
      }
      return over;
    });
    if ((polled[1].revents & POLLIN) != 0) accept();
    return true;
  }

  void accept() {
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client < 0) return;
    const int server = checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
    if (::connect(server, reinterpret_cast<const sockaddr*>(&server_), sizeof(server_)) != 0) {
      ::close(server);
      ::close(client);
      return;
    }
    const int yes = 1;
    for (const int one : {client, server}) ::setsockopt(one, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    const Time open = Clock::now() + 3 * up_.latency();
    connections_.push_back({Way{client, server, open}, Way{server, client, open}});
  }

  sockaddr_in server_;
  Line up_;
  Line down_;
  int listener_ = -1;
  std::list<Connection> connections_;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const double value = equals == std::string::npos ? 0 : std::strtod(word.c_str() + equals + 1, nullptr);
    if (name == "latency_ms")
      options.latency_ms = value;
    else if (name == "mb_per_s")
      options.mb_per_s = value;
    else if (name == "flip_every")
      options.flip_every = static_cast<std::uint64_t>(value);
    else if (name == "seed")
      options.seed = static_cast<std::uint64_t>(value);
    else
      return std::fprintf(stderr, "tcp_link: unknown option %s\n", word.c_str()), 2;
  }
  if (argc < 2)
    return std::fprintf(stderr, "tcp_link PORT [latency_ms=] [mb_per_s=] [flip_every=] [seed=]\n"), 2;
  try {
    Proxy(static_cast<std::uint16_t>(std::strtoul(argv[1], nullptr, 10)), options).run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tcp_link: %s\n", error.what());
    return 1;
  }
}
