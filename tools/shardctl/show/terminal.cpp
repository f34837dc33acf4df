#include "shardctl/show/terminal.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/unique_handle.hpp"

namespace shard::ctl {
namespace {

constexpr std::chrono::milliseconds kMostWait{1000};
constexpr std::uint32_t kMostColumns = 1000;  // what a terminal says of itself is not trusted beyond this
constexpr std::uint32_t kMostCell = 200;      // pixels

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

// "62;4;22" as numbers. What is no number is 0.
std::vector<std::uint32_t> numbers_of(std::string_view text) {
  std::vector<std::uint32_t> numbers;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(';', begin), text.size());
    std::uint32_t number = 0;
    std::from_chars(text.data() + begin, text.data() + end, number);
    numbers.push_back(number);
    begin = end + 1;
  }
  return numbers;
}

// A terminal whose lines are not waited for and whose keys are not shown, until this object's end. Signals of
// the keyboard wait meanwhile, so that none leaves the terminal like this.
class Silenced {
 public:
  explicit Silenced(int fd) : fd_(fd) {
    sigset_t keyboard{};
    sigemptyset(&keyboard);
    for (const int signal : {SIGINT, SIGQUIT, SIGTSTP, SIGTERM, SIGHUP}) sigaddset(&keyboard, signal);
    pthread_sigmask(SIG_BLOCK, &keyboard, &mask_before_);
    valid_ = tcgetattr(fd, &before_) == 0;
    if (!valid_) return;
    termios now = before_;
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    now.c_cc[VMIN] = 0;
    now.c_cc[VTIME] = 0;
    valid_ = tcsetattr(fd, TCSADRAIN, &now) == 0;
  }
  Silenced(const Silenced&) = delete;
  Silenced& operator=(const Silenced&) = delete;
  ~Silenced() {
    if (valid_) tcsetattr(fd_, TCSADRAIN, &before_);
    pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  }
  bool valid() const noexcept { return valid_; }

 private:
  int fd_;
  bool valid_ = false;
  termios before_{};
  sigset_t mask_before_{};
};

TerminalAnswer ask_terminal() {
  // The console of Linux shows what it does not know.
  if (variable("TERM") == "linux") return {};
  const UniqueFd terminal(open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!terminal || tcgetpgrp(terminal.get()) != getpgrp()) return {};
  const Silenced silenced(terminal.get());
  if (!silenced.valid()) return {};
  if (write(terminal.get(), kTerminalQuery.data(), kTerminalQuery.size()) !=
      static_cast<ssize_t>(kTerminalQuery.size()))
    return {};
  const auto end = std::chrono::steady_clock::now() + kMostWait;
  std::string bytes;
  TerminalAnswer answer;
  while (!answer.complete && bytes.size() < 4096) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd ready{terminal.get(), POLLIN, 0};
    if (left.count() <= 0 || poll(&ready, 1, static_cast<int>(left.count())) <= 0) break;
    char more[512];
    const ssize_t count = read(terminal.get(), more, sizeof more);
    if (count <= 0) break;
    bytes.append(more, static_cast<std::size_t>(count));
    answer = parse_terminal_answer(bytes);
  }
  return answer;
}

bool is_cell(std::uint32_t width, std::uint32_t height) {
  return width > 0 && height > 0 && width <= kMostCell && height <= kMostCell;
}

}  // namespace

TerminalAnswer parse_terminal_answer(std::string_view bytes) {
  TerminalAnswer answer;
  answer.kitty = bytes.find("\x1b_Gi=31;OK\x1b\\") != std::string_view::npos;
  for (std::size_t at = bytes.find("\x1b["); at != std::string_view::npos; at = bytes.find("\x1b[", at + 1)) {
    const std::string_view rest = bytes.substr(at + 2);
    const std::size_t last = rest.find_first_not_of("0123456789;?");
    if (last == std::string_view::npos) continue;
    const std::string_view parameters = rest.substr(0, last);
    if (rest[last] == 'c' && parameters.starts_with('?')) {
      // The first number is the kind of terminal, the others are what it can do; 4 is sixel.
      const std::vector<std::uint32_t> numbers = numbers_of(parameters.substr(1));
      for (std::size_t i = 1; i < numbers.size(); ++i) answer.sixel |= numbers[i] == 4;
      answer.complete = true;
    }
    if (rest[last] == 't') {
      const std::vector<std::uint32_t> numbers = numbers_of(parameters);
      if (numbers.size() == 3 && numbers[0] == 6 && is_cell(numbers[2], numbers[1])) {
        answer.cell_height = numbers[1];
        answer.cell_width = numbers[2];
      }
    }
  }
  return answer;
}

bool writes_to_terminal() {
  const std::string_view term = variable("TERM");
  return isatty(STDOUT_FILENO) == 1 && !term.empty() && term != "dumb";
}

Terminal find_terminal(std::optional<Graphics> graphics) {
  Terminal terminal;
  const std::string_view colors = variable("COLORTERM");
  terminal.true_colors = colors == "truecolor" || colors == "24bit";
  if (writes_to_terminal()) {
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 && size.ws_row > 1) {
      terminal.columns = size.ws_col;
      terminal.rows = size.ws_row;
      const std::uint32_t width = size.ws_xpixel / size.ws_col;
      const std::uint32_t height = size.ws_ypixel / size.ws_row;
      if (is_cell(width, height)) {
        terminal.cell_width = width;
        terminal.cell_height = height;
      }
    }
    if (!graphics || *graphics != Graphics::blocks) {
      const TerminalAnswer answer = ask_terminal();
      terminal.graphics = answer.kitty ? Graphics::kitty : answer.sixel ? Graphics::sixel : Graphics::blocks;
      if (answer.cell_width != 0) {
        terminal.cell_width = answer.cell_width;
        terminal.cell_height = answer.cell_height;
      }
    }
  }
  if (graphics) terminal.graphics = *graphics;
  terminal.columns = std::min(terminal.columns, kMostColumns);
  terminal.rows = std::min(terminal.rows, kMostColumns);
  return terminal;
}

}  // namespace shard::ctl
