// What the bindings of conversions share.
#pragma once

#include "shard/convert/convert.hpp"

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "common.hpp"

namespace shard::python {

// Work of the library. Runs on a thread of its own, which no signal reaches: they are Python's,
// and no write or fsync ends early.
class Background {
 public:
  using Work = std::function<void(const convert::Hooks&)>;

  explicit Background(Work work) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before);
    thread_ = std::thread([this, work = std::move(work)] { run(work); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  ~Background() {
    WithoutGil without_gil;
    cancel_ = true;
    thread_.join();
  }
  // Calls `report` some times a second until the work is done. Throws its error, or that of a signal handler.
  template <class Report>
  void wait(Report report) {
    for (bool over = false; !over;) {
      {
        WithoutGil without_gil;
        std::unique_lock lock(mutex_);
        over = changed_.wait_for(lock, kTick, [&] { return over_; });
      }
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      report();
    }
    if (error_) std::rethrow_exception(error_);
  }
  const convert::Counters& counters() const { return counters_; }

 private:
  void run(const Work& work) noexcept {
    try {
      work({&counters_, &cancel_});
    } catch (...) {
      error_ = std::current_exception();
    }
    std::lock_guard lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }

  convert::Counters counters_;
  std::atomic<bool> cancel_{false};
  std::exception_ptr error_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

// The options that Python gives, as shardloader._convert.options names them. Not checked as a whole.
convert::Options options_of(const nb::dict& given);
// What Conversion of shardloader._convert is made of.
nb::dict dict_of(const convert::Summary& summary);

}  // namespace shard::python
