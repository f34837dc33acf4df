// What ThreadSanitizer cannot see: the reference count of std::exception_ptr is kept by the C++ library,
// which is not instrumented, so that the last owner's delete looks like a race with another owner's earlier
// what().
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SHARD_THREAD_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define SHARD_THREAD_SANITIZER 1
#endif

#if defined(SHARD_THREAD_SANITIZER)
extern "C" const char* __tsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier): its name
  return "race:std::__exception_ptr::exception_ptr::_M_release\n";
}
#endif
