// The only file that names liburing.
#include <fmt/format.h>
#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <deque>
#include <system_error>
#include <thread>

#include "shard/error.hpp"
#include "shard/loader/direct_reads.hpp"

namespace shard {

namespace {

class UringQueue final : public ReadQueue {
 public:
  explicit UringQueue(unsigned entries) : room_(entries) {
    const int result = io_uring_queue_init(entries, &ring_, 0);
    if (result < 0)
      throw Error(ErrorCode::unsupported,
                  fmt::format("io_uring is refused: {}{}", std::generic_category().message(-result),
                              result == -ENOMEM ? " (limit of locked memory, ulimit -l)" : ""));
    room_ = *ring_.sq.kring_entries;
  }
  UringQueue(const UringQueue&) = delete;
  UringQueue& operator=(const UringQueue&) = delete;
  ~UringQueue() override { io_uring_queue_exit(&ring_); }

  std::string_view name() const noexcept override { return "io_uring"; }
  void start(ReadRequest& request) override {
    if (under_way_ < room_)
      prepare(request);
    else
      waiting_.push_back(&request);
  }
  void flush() override { enter(0); }

  ReadRequest& next_done() override {
    io_uring_cqe* completion = nullptr;
    while (io_uring_peek_cqe(&ring_, &completion) != 0) enter(1);
    auto& request = *static_cast<ReadRequest*>(io_uring_cqe_get_data(completion));
    request.result = completion->res;
    io_uring_cqe_seen(&ring_, completion);
    --under_way_;
    if (!waiting_.empty()) {
      prepare(*waiting_.front());
      waiting_.pop_front();
      if (++unsubmitted_ >= kSubmitBatch) enter(0);
    }
    return request;
  }
  // Waits for all requests that the kernel has. Completions arrive without a system call that could fail.
  void drain() noexcept override {
    constexpr std::chrono::milliseconds kPause{1};
    waiting_.clear();
    const unsigned not_taken = io_uring_sq_ready(&ring_);
    under_way_ -= std::min(under_way_, not_taken);
    while (under_way_ > 0) {
      io_uring_cqe* completion = nullptr;
      if (io_uring_peek_cqe(&ring_, &completion) == 0) {
        io_uring_cqe_seen(&ring_, completion);
        --under_way_;
      } else {
        std::this_thread::sleep_for(kPause);
      }
    }
  }

 private:
  // The queue always has a free entry: it has as many as there are requests under way at most.
  void prepare(ReadRequest& request) {
    io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
    io_uring_prep_read(entry, request.descriptor, request.target, request.size_bytes, request.offset);
    io_uring_sqe_set_data(entry, &request);
    ++under_way_;
  }
  void enter(unsigned wait_for) {
    unsubmitted_ = 0;
    for (;;) {
      const int result = wait_for > 0 ? io_uring_submit_and_wait(&ring_, wait_for) : io_uring_submit(&ring_);
      if (result >= 0) return;
      if (result != -EINTR && result != -EAGAIN && result != -EBUSY)
        throw Error(ErrorCode::io, fmt::format("io_uring: {}", std::generic_category().message(-result)));
      if (wait_for == 0 && result != -EINTR)
        return;  // the kernel lacks memory for now; the next call submits the rest
    }
  }

  static constexpr unsigned kSubmitBatch = 16;
  io_uring ring_{};
  unsigned room_;
  unsigned under_way_ = 0;
  unsigned unsubmitted_ = 0;
  std::deque<ReadRequest*> waiting_;
};

}  // namespace

std::unique_ptr<ReadQueue> make_uring_queue(unsigned entries) {
  return std::make_unique<UringQueue>(entries);
}

}  // namespace shard
