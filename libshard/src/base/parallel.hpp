// Threads for loops.
#pragma once

#include <cstdint>
#include <functional>

namespace shard {

// `jobs`, or where that is 0 as many as this process has CPUs.
unsigned thread_count(unsigned jobs);

// Runs `work(thread)` for thread = 0 to threads - 1, each on a thread of its own (0 on the calling one), and
// joins them. Throws the first of what they threw. Where the system gives no more threads, the others do
// without them: `work` must share what there is to do, not own a part of it.
void run_threads(unsigned threads, const std::function<void(unsigned thread)>& work);

// Calls `body(thread, index)` for every index in [0, count), each once, in about ascending order, on at most
// `threads` threads. The first exception stops the loop and is thrown.
void parallel_for(unsigned threads, std::uint64_t count,
                  const std::function<void(unsigned thread, std::uint64_t index)>& body);

}  // namespace shard
