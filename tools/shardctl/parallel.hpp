// Threads for loops over samples.
#pragma once

#include <cstdint>
#include <functional>

namespace shard::ctl {

unsigned thread_count(unsigned jobs);  // jobs, or one a core when 0

// Runs `work(thread)` on `threads` threads and joins them; throws the first of what they threw.
void run_threads(unsigned threads, const std::function<void(unsigned thread)>& work);

// Calls `body(thread, index)` for every index in [0, count), each once, in about ascending order. The first
// exception stops the loop and is thrown.
void parallel_for(unsigned threads, std::uint64_t count,
                  const std::function<void(unsigned thread, std::uint64_t index)>& body);

}  // namespace shard::ctl
