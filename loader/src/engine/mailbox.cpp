#include "engine/mailbox.hpp"

#include <utility>

namespace shard {

void Mailbox::run(const Run& run) {
  const std::lock_guard lock(mutex_);
  stopping_ = false;
  run_ = run;
  changed_.notify_all();
}

void Mailbox::wait_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return idle_ && !run_; });
}

void Mailbox::quit() {
  const std::lock_guard lock(mutex_);
  quit_ = true;
  changed_.notify_all();
}

std::optional<Mailbox::Run> Mailbox::next_run() {
  std::unique_lock lock(mutex_);
  idle_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return quit_ || run_; });
  if (quit_) return std::nullopt;
  idle_ = false;
  return std::exchange(run_, std::nullopt);
}

}  // namespace shard
