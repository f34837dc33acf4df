// Names for the library's threads, as top -H, gdb and profilers show them.
#pragma once

#include <pthread.h>

namespace shard {

// Of the calling thread; 15 characters at most.
inline void name_thread(const char* name) noexcept { ::pthread_setname_np(::pthread_self(), name); }

}  // namespace shard
