// Progress: one live line on a terminal, a plain line every 5 seconds elsewhere (also where TERM is dumb or
// not set). On standard error. The live line is cut to the width of the terminal, so what matters most comes
// first in it.
//
// Thread safe: update() from many threads is cheap (one atomic load) when nothing is due. Destruction
// finishes.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace shard::cli {

enum class ProgressMode : std::uint8_t { automatic, quiet };

class Progress {
 public:
  explicit Progress(ProgressMode mode = ProgressMode::automatic);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  // True when an update would be shown: a caller with costly text asks first.
  bool due() const noexcept;
  // Shown when due (10 times a second on a terminal, every 5 seconds elsewhere), else dropped.
  void update(std::string_view text);
  // Prints a lasting line (a warning) without breaking the live one; also when quiet.
  void note(std::string_view line);
  // Clears the live line. Later updates show nothing. Idempotent.
  void finish() noexcept;

 private:
  void clear_locked() noexcept;

  bool terminal_ = false;
  std::atomic<bool> active_{true};
  std::atomic<std::int64_t> next_ms_{0};  // steady clock
  std::mutex mutex_;
  bool line_shown_ = false;
};

}  // namespace shard::cli
