// Rows that a thread makes itself, with the help of those threads of a pool that have nothing to do.
#pragma once

#include <cstddef>
#include <functional>

#include "base/system/thread_pool.hpp"

namespace shard {

// Calls body(first, last) for parts of at most `grain` of the rows, on this thread and on up to `helpers`
// others, and returns when all rows are done. It does not wait for threads that are busy: then this thread
// does all. If bodies throw, the error of the first part of them is rethrown, once no other runs.
void share_rows(ThreadPool& pool, std::size_t helpers, std::size_t rows, std::size_t grain,
                const std::function<void(std::size_t first, std::size_t last)>& body);

}  // namespace shard
