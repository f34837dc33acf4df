#include "base/system/shared_rows.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace shard {
namespace {

TEST(SharedRows, MakesEachRowOnceWithTheHelpThereIs) {
  ThreadPool pool(4);
  std::set<std::thread::id> threads;
  std::mutex mutex;
  for (const std::size_t helpers : {0U, 1U, 3U, 9U})
    for (const std::size_t rows : {0U, 1U, 7U, 64U, 1000U}) {
      std::vector<std::atomic<int>> made(rows);
      share_rows(pool, helpers, rows, 8, [&](std::size_t first, std::size_t last) {
        if (rows == 1000U) std::this_thread::sleep_for(std::chrono::microseconds(50));
        for (std::size_t row = first; row < last; ++row) ++made[row];
        const std::lock_guard lock(mutex);
        threads.insert(std::this_thread::get_id());
      });
      for (std::size_t row = 0; row < rows; ++row) EXPECT_EQ(made[row], 1) << helpers << ", row " << row;
    }
  EXPECT_GT(threads.size(), 1U);
}

// Busy threads come too late, when the rows are long made, and touch nothing of them.
TEST(SharedRows, DoesNotWaitForThreadsThatAreBusy) {
  ThreadPool pool(2);
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future().share();
  pool.submit({2, 1, [gone](std::size_t, std::size_t) { gone.wait(); }, [](const std::exception_ptr&) {}});
  for (int round = 0; round < 100; ++round) {
    std::vector<int> made(64);
    share_rows(pool, 2, made.size(), 4, [&](std::size_t first, std::size_t last) {
      for (std::size_t row = first; row < last; ++row) ++made[row];
    });
    EXPECT_EQ(made, std::vector<int>(64, 1));
  }
  go.set_value();
}

TEST(SharedRows, ThrowsTheErrorOfTheFirstPartThatFails) {
  ThreadPool pool(4);
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> rows{0};
    try {
      share_rows(pool, 3, 100, 5, [&](std::size_t first, std::size_t last) {
        rows += static_cast<int>(last - first);
        if (first % 20 == 10) throw std::runtime_error(std::to_string(first));
      });
      FAIL() << "no error";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "10");
    }
    EXPECT_EQ(rows, 100);
  }
}

}  // namespace
}  // namespace shard
