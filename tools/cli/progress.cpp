#include "cli/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace shard::cli {
namespace {

constexpr std::int64_t kTerminalPeriodMs = 100;
constexpr std::int64_t kPlainPeriodMs = 5000;

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// A terminal that says it is dumb, or says nothing, shows escape sequences as text: it gets plain lines.
bool shows_live_lines() {
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
}

// A live line must not wrap: cut to the terminal's width, on a code point boundary.
std::string_view cut_to_terminal(std::string_view text) {
  winsize size{};
  std::size_t columns = 80;
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1) columns = size.ws_col;
  std::size_t used = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) == 0x80U) continue;
    if (++used == columns) return text.substr(0, i);
  }
  return text;
}

void write_line(std::string_view before, std::string_view text, std::string_view after) {
  std::string line(before);
  line += text;
  line += after;
  std::fwrite(line.data(), 1, line.size(), stderr);  // a lost progress line is no error
  std::fflush(stderr);
}

}  // namespace

Progress::Progress(ProgressMode mode)
    : terminal_(shows_live_lines()), active_(mode == ProgressMode::automatic) {
  next_ms_ = now_ms() + (terminal_ ? 0 : kPlainPeriodMs);
}

Progress::~Progress() { finish(); }

bool Progress::due() const noexcept { return active_ && now_ms() >= next_ms_; }

void Progress::update(std::string_view text) {
  if (!due()) return;
  const std::lock_guard lock(mutex_);
  if (!due()) return;
  next_ms_ = now_ms() + (terminal_ ? kTerminalPeriodMs : kPlainPeriodMs);
  if (terminal_) {
    write_line("\r\x1b[K", cut_to_terminal(text), "");
    line_shown_ = true;
  } else {
    write_line("", text, "\n");
  }
}

void Progress::note(std::string_view line) {
  const std::lock_guard lock(mutex_);
  clear_locked();
  write_line("", line, "\n");
}

void Progress::finish() noexcept {
  const std::lock_guard lock(mutex_);
  active_ = false;
  clear_locked();
}

void Progress::clear_locked() noexcept {
  if (line_shown_) std::fputs("\r\x1b[K", stderr);
  line_shown_ = false;
}

}  // namespace shard::cli
