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
#include <array>
#include <cstddef>

extern "C" const char* __tsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier): its name
  return "race:std::__exception_ptr::exception_ptr::_M_release\n";
}

// A suppression needs the names of functions, and their first use opens files,
// which a test may have used up by then: a use before.
extern "C" void __sanitizer_symbolize_pc(void*, const char*, char*,
                                         std::size_t);  // NOLINT(bugprone-reserved-identifier)
namespace {
[[maybe_unused]] const bool names_are_here = [] {
  std::array<char, 256> text{};
  __sanitizer_symbolize_pc(__builtin_return_address(0), "%f", text.data(), text.size());
  return text[0] != '\0';
}();
}  // namespace
#endif
