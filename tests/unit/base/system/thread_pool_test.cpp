// ThreadPool: the threads that share the rows of an operation.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/system/thread_pool.hpp"
#include "shard/error.hpp"
#include "support/expect_error.hpp"

namespace shard {
namespace {

// The threads that took rows of one operation; each row waits for a moment, so that idle threads would take
// some.
std::set<std::thread::id> threads_of(ThreadPool& pool, std::size_t rows) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::promise<void> done;
  pool.submit({rows, 1,
               [&](std::size_t, std::size_t) {
                 std::this_thread::sleep_for(std::chrono::milliseconds(1));
                 const std::lock_guard lock(mutex);
                 threads.insert(std::this_thread::get_id());
               },
               [&](const std::exception_ptr&) { done.set_value(); }});
  done.get_future().get();
  return threads;
}

TEST(ThreadPool, GivesWorkToNoMoreThreadsThanItIsTold) {
  ThreadPool pool(4);
  ASSERT_EQ(pool.threads(), 4U);
  EXPECT_GT(threads_of(pool, 100).size(), 1U);
  pool.use_threads(1);
  threads_of(pool, 4);  // one that was at it may still have taken a row
  EXPECT_EQ(threads_of(pool, 50).size(), 1U);
  pool.use_threads(9);  // as many as there are
  EXPECT_GT(threads_of(pool, 100).size(), 1U);
}

TEST(ThreadPool, RunsWhatWasSubmittedBeforeItEndsAlsoOnOneThread) {
  std::atomic<int> rows{0};
  {
    ThreadPool pool(3);
    pool.use_threads(1);
    for (int i = 0; i < 20; ++i)
      pool.submit({5, 1, [&](std::size_t first, std::size_t last) { rows += static_cast<int>(last - first); },
                   [](const std::exception_ptr&) {}});
  }
  EXPECT_EQ(rows, 100);
}

TEST(ThreadPool, CountsTheTimeWithoutWork) {
  ThreadPool pool(2);
  const auto before = pool.idle();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_GE(pool.idle() - before, std::chrono::milliseconds(20));
  const auto begin = std::chrono::steady_clock::now();
  const auto rest = pool.idle();
  threads_of(pool, 40);  // in pauses of a millisecond
  const auto idle = pool.idle() - rest;
  EXPECT_LE(idle, std::chrono::steady_clock::now() - begin - std::chrono::milliseconds(20));
}

TEST(ThreadPool, HandsTheFirstErrorToWhoeverSubmitted) {
  ThreadPool pool(2);
  std::promise<std::exception_ptr> done;
  pool.submit({8, 1,
               [](std::size_t first, std::size_t) {
                 if (first == 3) throw std::runtime_error("row 3");
               },
               [&](std::exception_ptr error) { done.set_value(std::move(error)); }});
  EXPECT_THROW(std::rethrow_exception(done.get_future().get()), std::runtime_error);
}

TEST(ThreadPool, RunsEachRowOnceInParts) {
  ThreadPool pool(3);
  std::vector<std::atomic<int>> seen(100);
  std::atomic<std::size_t> parts{0};
  run_parts(pool, seen.size(), 7, [&](std::size_t first, std::size_t last) {
    EXPECT_EQ(first % 7, 0U);
    EXPECT_EQ(last, std::min<std::size_t>(first + 7, 100));
    ++parts;
    for (std::size_t row = first; row < last; ++row) ++seen[row];
  });
  EXPECT_EQ(parts, 15U);
  for (const auto& times : seen) EXPECT_EQ(times, 1);
  EXPECT_SHARD_ERROR(run_parts(pool, 20, 7,
                               [](std::size_t first, std::size_t) {
                                 if (first == 14) throw Error(ErrorCode::io, "in the last part");
                               }),
                     ErrorCode::io, "in the last part");
}

}  // namespace
}  // namespace shard
