#include "base/system/shared_rows.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>

namespace shard {

namespace {

// Lives until the last thread lets go of it: one may look for a part long after all are done.
struct Shared {
  const std::function<void(std::size_t, std::size_t)>* body;  // valid while there are parts
  std::size_t rows;
  std::size_t grain;
  std::size_t parts;
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> done{0};
  std::mutex mutex;
  std::size_t failed = std::numeric_limits<std::size_t>::max();  // the first part; guarded by mutex
  std::exception_ptr error;                                      // guarded by mutex

  void work() {
    for (std::size_t part = next.fetch_add(1); part < parts; part = next.fetch_add(1)) {
      try {
        (*body)(part * grain, std::min((part + 1) * grain, rows));
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (part < failed) {
          failed = part;
          error = std::current_exception();
        }
      }
      if (done.fetch_add(1) + 1 == parts) done.notify_all();
    }
  }
};

}  // namespace

void share_rows(ThreadPool& pool, std::size_t helpers, std::size_t rows, std::size_t grain,
                const std::function<void(std::size_t, std::size_t)>& body) {
  const std::size_t parts = (rows + grain - 1) / grain;
  if (parts == 0) return;
  helpers = std::min({helpers, parts - 1, pool.threads()});
  if (helpers == 0) return body(0, rows);
  const auto shared = std::make_shared<Shared>();
  shared->body = &body;
  shared->rows = rows;
  shared->grain = grain;
  shared->parts = parts;
  pool.submit(
      {helpers, 1, [shared](std::size_t, std::size_t) { shared->work(); }, [](const std::exception_ptr&) {}});
  shared->work();
  for (std::size_t done = shared->done.load(); done < parts; done = shared->done.load())
    shared->done.wait(done);
  // Taken out: the last thread to let go of the rest must not destroy what the caller looks at.
  if (const auto error = std::exchange(shared->error, nullptr)) std::rethrow_exception(error);
}

}  // namespace shard
