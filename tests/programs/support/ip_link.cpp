// Two hosts and a line between them: network namespaces with the kernel's own TCP, whose packets this program
// delays, bounds and loses. For tests and benchmarks of data sets on servers, where the kernel has no netem.
// Needs the rights of root, or those of a user namespace whose user may open /dev/net/tun.
//
//   ip_link [latency_ms=10] [mbit_per_s=1000] [queue_ms=40] [loss=0] [seed=1] [congestion=NAME]
//
// Prints the files of the two namespaces: of `near`, whose address is 192.0.2.1, and of `far`, 192.0.2.2. A
// program runs there by `nsenter --net=FILE PROGRAM`. Lines "name=value" on standard input change an option.
// Ends when its standard input ends, and the namespaces with it and the programs in them; then it prints how
// many packets were sent to `near` and how many of those were lost.
//
//   latency_ms   of each direction
//   mbit_per_s   of each direction, of packets with their heads; 0: without limit
//   queue_ms     how long a packet may wait for the line. What would wait longer is lost, as in a router
//   loss         probability, of each packet in both directions
//   congestion   how TCP of both hosts avoids congestion (cubic, bbr, ...)
//
//   near (tun) ──read──▶ Line: free, loss, queue ──latency──▶ write ── (tun) far
//
// and the same in the other direction.
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

struct Options {
  double latency_ms = 10;
  double mbit_per_s = 1000;
  double queue_ms = 40;
  double loss = 0;
  double seed = 1;
  std::string congestion{};

  // False: there is no such option.
  bool set(const std::string& word) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) return false;
    const std::string name = word.substr(0, equals);
    const std::string value = word.substr(equals + 1);
    if (name == "congestion") return congestion = value, true;
    double* const number = name == "latency_ms"   ? &latency_ms
                           : name == "mbit_per_s" ? &mbit_per_s
                           : name == "queue_ms"   ? &queue_ms
                           : name == "loss"       ? &loss
                           : name == "seed"       ? &seed
                                                  : nullptr;
    if (number == nullptr) return false;
    *number = std::strtod(value.c_str(), nullptr);
    return true;
  }
};

Clock::duration milliseconds(double value) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::milli>(value));
}

int checked(int value, const char* what) {
  if (value < 0) throw std::system_error(errno, std::generic_category(), what);
  return value;
}

// One direction.
class Line {
 public:
  Line(const Options& options, int from, int to, unsigned number)
      : options_(options), from_(from), to_(to), random_(static_cast<std::uint64_t>(options.seed) + number) {}

  // Takes what the sender has.
  void take() {
    std::array<std::byte, 2048> packet;
    for (int i = 0; i < 64; ++i) {  // then the other direction
      const ssize_t size = ::read(from_, packet.data(), packet.size());
      if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
      checked(static_cast<int>(size), "read");
      ++sent_;
      const Time now = Clock::now();
      const Time begin = std::max(free_, now);
      if (begin - now > milliseconds(options_.queue_ms) || chance_(random_) < options_.loss) {
        ++lost_;
        continue;
      }
      free_ = begin;
      if (options_.mbit_per_s > 0)
        free_ += milliseconds(static_cast<double>(size) * 8e-3 / options_.mbit_per_s);
      const std::vector<std::byte> bytes(packet.begin(), packet.begin() + size);
      on_the_way_.push_back({free_ + milliseconds(options_.latency_ms), bytes});
    }
  }
  // Gives the receiver what has arrived.
  void give() {
    for (; !on_the_way_.empty() && on_the_way_.front().arrives <= Clock::now(); on_the_way_.pop_front()) {
      const std::vector<std::byte>& bytes = on_the_way_.front().bytes;
      if (::write(to_, bytes.data(), bytes.size()) < 0) ++lost_;
    }
  }
  Time next(Time otherwise) const {
    return on_the_way_.empty() ? otherwise : std::min(otherwise, on_the_way_.front().arrives);
  }
  std::uint64_t sent() const { return sent_; }
  std::uint64_t lost() const { return lost_; }

 private:
  struct Packet {
    Time arrives;
    std::vector<std::byte> bytes;
  };
  const Options& options_;
  int from_;
  int to_;
  std::mt19937_64 random_;
  std::uniform_real_distribution<double> chance_{0, 1};
  std::deque<Packet> on_the_way_{};
  Time free_{};
  std::uint64_t sent_ = 0;
  std::uint64_t lost_ = 0;
};

// A namespace of its own, in which this thread is from then on.
struct Host {
  int tun = -1;
  int space = -1;

  Host(const char* address, const Options& options) {
    checked(::unshare(CLONE_NEWNET), "a network namespace");
    space = checked(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), "/proc/thread-self/ns/net");
    tun = checked(::open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK), "/dev/net/tun");
    const int socket = checked(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket");
    ifreq request = named("lo");
    request.ifr_flags = IFF_UP;
    checked(::ioctl(socket, SIOCSIFFLAGS, &request), "lo");
    request = named("line");
    request.ifr_flags = IFF_TUN | IFF_NO_PI;
    checked(::ioctl(tun, TUNSETIFF, &request), "a tun device");
    request = named("line");
    set_address(request.ifr_addr, address);
    checked(::ioctl(socket, SIOCSIFADDR, &request), "the address");
    request = named("line");
    set_address(request.ifr_netmask, "255.255.255.0");
    checked(::ioctl(socket, SIOCSIFNETMASK, &request), "the mask");
    request = named("line");
    request.ifr_qlen = 10'000;  // packets wait in Line
    checked(::ioctl(socket, SIOCSIFTXQLEN, &request), "the queue");
    request = named("line");
    request.ifr_flags = IFF_UP;
    checked(::ioctl(socket, SIOCSIFFLAGS, &request), "the device");
    ::close(socket);
    if (options.congestion.empty()) return;
    std::ofstream setting("/proc/sys/net/ipv4/tcp_congestion_control");
    if (!(setting << options.congestion << std::flush))
      throw std::runtime_error("this kernel has no congestion control " + options.congestion);
  }

 private:
  static ifreq named(const char* name) {
    ifreq request{};
    std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    return request;
  }
  static void set_address(sockaddr& where, const char* text) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    ::inet_pton(AF_INET, text, &address.sin_addr);
    std::memcpy(&where, &address, sizeof(address));
  }
};

// False: standard input has ended.
bool read_options(Options& options) {
  std::array<char, 256> text;
  const ssize_t size = ::read(STDIN_FILENO, text.data(), text.size());
  if (size <= 0) return false;
  const std::string words(text.data(), static_cast<std::size_t>(size));
  std::size_t begin = 0;
  for (std::size_t end = words.find('\n'); end != std::string::npos; end = words.find('\n', begin)) {
    if (!options.set(words.substr(begin, end - begin)))
      std::fprintf(stderr, "ip_link: not an option: %s\n", words.c_str());
    begin = end + 1;
  }
  return true;
}

void run(Options& options) {
  const Host near("192.0.2.1", options);
  const Host far("192.0.2.2", options);
  std::printf("/proc/%d/fd/%d /proc/%d/fd/%d\n", ::getpid(), near.space, ::getpid(), far.space);
  std::fflush(stdout);
  Line up(options, near.tun, far.tun, 1);
  Line down(options, far.tun, near.tun, 2);
  for (;;) {
    const Time now = Clock::now();
    const auto wait =
        std::max(down.next(up.next(now + std::chrono::seconds(1))) - now, Clock::duration::zero());
    const timespec timeout{wait / std::chrono::seconds(1),
                           (wait % std::chrono::seconds(1)) / std::chrono::nanoseconds(1)};
    std::array<pollfd, 3> polled{{{STDIN_FILENO, POLLIN, 0}, {near.tun, POLLIN, 0}, {far.tun, POLLIN, 0}}};
    if (::ppoll(polled.data(), polled.size(), &timeout, nullptr) < 0 && errno != EINTR) checked(-1, "ppoll");
    if (polled[0].revents != 0 && !read_options(options)) break;
    up.take();
    down.take();
    up.give();
    down.give();
  }
  std::printf("%llu %llu\n", static_cast<unsigned long long>(down.sent()),
              static_cast<unsigned long long>(down.lost()));
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i)
    if (!options.set(argv[i])) return std::fprintf(stderr, "ip_link: not an option: %s\n", argv[i]), 2;
  try {
    run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ip_link: %s\n", error.what());
    return 1;
  }
}
