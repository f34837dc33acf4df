#include "base/system/thread_pool.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/system/thread_name.hpp"
#include "shard/error.hpp"

namespace shard {

struct ThreadPool::Active {
  Operation operation;
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> left{0};  // rows not ended
  std::mutex mutex;
  std::exception_ptr error;  // the first, guarded by mutex
};

ThreadPool::ThreadPool(unsigned threads, const char* name)
    : process_(::getpid()), state_(std::make_unique<State>()) {
  state_->used = threads;
  try {
    for (unsigned i = 0; i < threads; ++i)
      state_->threads.emplace_back([state = state_.get(), i, name] {
        name_thread(name);
        work(*state, i);
      });
  } catch (const std::exception& error) {
    const std::size_t started = state_->threads.size();
    join();
    throw Error(ErrorCode::resource, fmt::format("cannot start thread {} of {}: {}; use fewer threads",
                                                 started + 1, threads, error.what()));
  }
}

ThreadPool::~ThreadPool() {
  if (made_by_another_process()) {
    static_cast<void>(state_.release());  // its threads are not in this process, its mutex may be held by one
    return;
  }
  join();
}

void ThreadPool::join() {
  {
    std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->changed.notify_all();
  state_->resumed.notify_all();
  for (std::thread& thread : state_->threads) thread.join();
}

bool ThreadPool::made_by_another_process() const noexcept { return ::getpid() != process_; }

void ThreadPool::submit(Operation operation) {
  if (operation.rows == 0) return operation.finished(nullptr);  // no thread would end its last row
  auto active = std::make_shared<Active>();
  active->operation = std::move(operation);
  active->left = active->operation.rows;
  std::size_t wanted = (active->operation.rows - 1) / active->operation.grain + 1;
  {
    std::lock_guard lock(state_->mutex);
    wanted = std::min(wanted, state_->used);
    if (state_->is_idle()) state_->idle += std::chrono::steady_clock::now() - state_->idle_since;
    state_->active.push_back(std::move(active));
  }
  // No more than can be of use: each costs a call of the kernel, and those woken in vain hold up the others.
  for (; wanted > 0; --wanted) state_->changed.notify_one();
}

void ThreadPool::use_threads(std::size_t threads) {
  {
    std::lock_guard lock(state_->mutex);
    state_->used = std::clamp<std::size_t>(threads, 1, state_->threads.size());
  }
  state_->changed.notify_all();
  state_->resumed.notify_all();
}

std::chrono::nanoseconds ThreadPool::idle() const {
  std::lock_guard lock(state_->mutex);
  return state_->idle + (state_->is_idle() ? std::chrono::steady_clock::now() - state_->idle_since
                                           : std::chrono::nanoseconds{0});
}

void ThreadPool::work(State& state, std::size_t index) {
  bool was_running = false;
  for (;;) {
    std::shared_ptr<Active> active;
    std::size_t first = 0;
    {
      std::unique_lock lock(state.mutex);
      if (std::exchange(was_running, false)) {
        --state.running;
        if (state.is_idle()) state.idle_since = std::chrono::steady_clock::now();
      }
      for (;;) {
        state.resumed.wait(lock, [&] { return state.stop || index < state.used; });
        state.changed.wait(lock, [&] { return state.stop || !state.active.empty() || index >= state.used; });
        if (index >= state.used && !state.stop) continue;
        if (state.active.empty() || index >= state.used) return;
        active = state.active.front();
        first = active->next.fetch_add(active->operation.grain);
        if (first + active->operation.grain >= active->operation.rows)
          state.active.pop_front();  // these are its last rows
        if (first < active->operation.rows) break;
      }
      ++state.running;
      was_running = true;
    }
    const std::size_t last = std::min(first + active->operation.grain, active->operation.rows);
    try {
      active->operation.body(first, last);
    } catch (...) {
      std::lock_guard lock(active->mutex);
      if (!active->error) active->error = std::current_exception();
    }
    if (active->left.fetch_sub(last - first) == last - first) active->operation.finished(active->error);
  }
}

void submit_rows(ThreadPool& pool, std::size_t rows, std::future<void>& filled,
                 std::function<void(std::size_t)> body, std::size_t grain) {
  auto done = std::make_shared<std::promise<void>>();
  filled = done->get_future();
  pool.submit({rows, grain,
               [body = std::move(body)](std::size_t first, std::size_t last) {
                 for (std::size_t row = first; row < last; ++row) body(row);
               },
               [done](std::exception_ptr error) { error ? done->set_exception(error) : done->set_value(); }});
}

void run_rows(ThreadPool& pool, std::size_t rows, const std::function<void(std::size_t)>& body) {
  run_parts(pool, rows, 1, [&](std::size_t first, std::size_t) { body(first); });
}

void run_parts(ThreadPool& pool, std::size_t rows, std::size_t grain,
               const std::function<void(std::size_t, std::size_t)>& body) {
  std::promise<void> done;
  pool.submit({rows, grain, [&body](std::size_t first, std::size_t last) { body(first, last); },
               [&done](std::exception_ptr error) { error ? done.set_exception(error) : done.set_value(); }});
  done.get_future().get();
}

}  // namespace shard
