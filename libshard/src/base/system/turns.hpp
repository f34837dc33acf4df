// Turns: of several threads that need the same thing made, one makes it, and the others wait and find it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>

namespace shard {

class Turns {
 public:
  // While it lives, no other thread has a turn for the same number: its constructor waits.
  class Turn {
   public:
    Turn(Turns& of, std::uint64_t number) : of_(of), number_(number) {
      std::unique_lock lock(of_.mutex_);
      of_.ended_.wait(lock, [&] { return !of_.taken_.contains(number_); });
      of_.taken_.insert(number_);
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() {
      {
        const std::lock_guard lock(of_.mutex_);
        of_.taken_.erase(number_);
      }
      of_.ended_.notify_all();
    }

   private:
    Turns& of_;
    const std::uint64_t number_;
  };

 private:
  std::mutex mutex_;  // guards taken_
  std::set<std::uint64_t> taken_;
  std::condition_variable ended_;
};

}  // namespace shard
