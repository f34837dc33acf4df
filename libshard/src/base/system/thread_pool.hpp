// ThreadPool: a fixed number of threads that share operations of many rows.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace shard {

// Runs operations of many rows on a fixed number of threads. Operations are taken in the order of their
// submission, rows of one operation by all threads together.
class ThreadPool {
 public:
  struct Operation {
    std::size_t rows = 1;
    std::size_t grain = 1;                                          // rows taken at once
    std::function<void(std::size_t first, std::size_t last)> body;  // may throw
    std::function<void(std::exception_ptr error)>
        finished;  // called once, on the thread that ends the last row; without rows, by submit()
  };

  // name: of the threads, 15 characters at most. Errors: resource.
  explicit ThreadPool(unsigned threads, const char* name = "shard-pool");
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();  // runs what was submitted, then joins; does nothing in a forked child, which has no threads
  void submit(Operation operation);
  // How many of the threads take work from now on, 1 to threads().
  void use_threads(std::size_t threads);
  std::size_t threads() const noexcept { return state_->threads.size(); }
  // Time in which there was nothing to do, since the pool was made.
  std::chrono::nanoseconds idle() const;
  bool made_by_another_process() const noexcept;

 private:
  struct Active;
  struct State {
    std::mutex mutex;
    std::condition_variable changed;  // there is work; those that take it wait here
    std::condition_variable resumed;  // more threads take work; the others wait here
    std::deque<std::shared_ptr<Active>> active;
    bool stop = false;
    std::size_t used = 0;     // threads that take work
    std::size_t running = 0;  // threads in a body
    std::chrono::steady_clock::time_point idle_since = std::chrono::steady_clock::now();
    std::chrono::nanoseconds idle{0};  // up to idle_since
    bool is_idle() const noexcept { return active.empty() && running == 0; }
    std::vector<std::thread> threads;
  };
  static void work(State& state, std::size_t index);
  void join();

  const int process_;
  std::unique_ptr<State> state_;
};

// Calls body(row) for each row on the pool's threads, which take `grain` rows at once. `filled` becomes ready
// after the last one, with the first error.
void submit_rows(ThreadPool& pool, std::size_t rows, std::future<void>& filled,
                 std::function<void(std::size_t)> body, std::size_t grain = 2);
// Calls body(row) for each row on the pool's threads and waits; rethrows the first error.
void run_rows(ThreadPool& pool, std::size_t rows, const std::function<void(std::size_t)>& body);
// The same with `grain` rows at once: body(first, last).
void run_parts(ThreadPool& pool, std::size_t rows, std::size_t grain,
               const std::function<void(std::size_t, std::size_t)>& body);

}  // namespace shard
