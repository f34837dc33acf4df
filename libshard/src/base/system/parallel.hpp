// Threads for loops.
#pragma once

#include <cstdint>
#include <functional>

namespace shard {

// `jobs` or, if that is 0, the number of CPUs of this process.
unsigned thread_count(unsigned jobs);

// Runs `work(thread)` for thread = 0 to threads - 1, each on another thread (0 on the calling one), and joins
// them. Throws the first exception. If the system refuses a thread, only those that could be started run. So
// the threads must share the work; none may own a part of it.
void run_threads(unsigned threads, const std::function<void(unsigned thread)>& work);

// Calls `body(thread, index)` for every index in [0, count), each once, in about ascending order, on at most
// `threads` threads. The first exception stops the loop and is thrown.
void parallel_for(unsigned threads, std::uint64_t count,
                  const std::function<void(unsigned thread, std::uint64_t index)>& body);

}  // namespace shard
