// Damage: what a reading command found broken. The command goes on with what is whole, names the rest on
// standard error and ends with exit code 1.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "shard/error.hpp"

namespace shard::ctl {

// All members may be called from several threads at once.
class Damage {
 public:
  explicit Damage(std::string_view what = "sample") : what_(what) {}
  // Calls `read`, which reads sample (or whatever is counted) `index`. False when it is damaged (`read` threw
  // corrupt): it is noted then. Other errors pass through.
  template <class Read>
  bool survives(std::uint64_t index, Read&& read) {
    try {
      read();
      return true;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::corrupt) throw;
      add(index, error.what());
      return false;
    }
  }

  bool found() const { return count() != 0; }
  std::uint64_t count() const;
  // Prints each damage once, in the order of the samples, then `consequence` ("nothing was written").
  void report(std::string_view consequence) const;

 private:
  void add(std::uint64_t index, const char* message);

  std::string what_;
  mutable std::mutex mutex_;
  std::uint64_t count_ = 0;
  std::map<std::uint64_t, std::string> first_;  // of the lowest indices, at most kMaxNamed
};

}  // namespace shard::ctl
