#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <thread>
#include <vector>

#include "shard/error.hpp"
#include "shard/loader/direct_reads.hpp"

namespace shard {

namespace {

class ThreadQueue final : public ReadQueue {
 public:
  explicit ThreadQueue(unsigned threads) {
    try {
      for (unsigned i = 0; i < threads; ++i)
        threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
    } catch (const std::system_error& error) {
      throw Error(ErrorCode::resource, fmt::format("cannot start reading thread {} of {}: {}",
                                                   threads_.size() + 1, threads, error.what()));
    }
  }
  std::string_view name() const noexcept override { return "reading threads"; }
  void start(ReadRequest& request) override {
    {
      std::lock_guard lock(mutex_);
      started_.push_back(&request);
    }
    started_changed_.notify_one();
  }
  void flush() override {}
  ReadRequest& next_done() override {
    std::unique_lock lock(mutex_);
    done_changed_.wait(lock, [this] { return !done_.empty(); });
    ReadRequest& request = *done_.front();
    done_.pop_front();
    return request;
  }
  void drain() noexcept override {
    std::unique_lock lock(mutex_);
    started_.clear();
    done_changed_.wait(lock, [this] { return reading_ == 0; });
    done_.clear();
  }

 private:
  void work(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (started_changed_.wait(lock, stop, [this] { return !started_.empty(); })) {
      ReadRequest& request = *started_.front();
      started_.pop_front();
      ++reading_;
      lock.unlock();
      ssize_t got = 0;
      do
        got = ::pread(request.descriptor, request.target, request.size_bytes,
                      static_cast<off_t>(request.offset));
      while (got < 0 && errno == EINTR);
      request.result = got < 0 ? -errno : got;
      lock.lock();
      --reading_;
      done_.push_back(&request);
      done_changed_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any started_changed_;
  std::condition_variable done_changed_;
  std::deque<ReadRequest*> started_;
  std::deque<ReadRequest*> done_;
  unsigned reading_ = 0;               // threads in pread()
  std::vector<std::jthread> threads_;  // last: joined before the rest goes
};

}  // namespace

std::unique_ptr<ReadQueue> make_thread_queue(unsigned threads) {
  return std::make_unique<ThreadQueue>(threads);
}

}  // namespace shard
