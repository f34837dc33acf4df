// What the sources of the extension `shardloader._core` share.
//
// Calls into the library that may block run without the GIL. Waits come back every kTick to let Python's
// signal handlers run (KeyboardInterrupt). What Python objects hold and exchange is guarded by locks of its
// own: a free-threaded interpreter has no GIL.
#pragma once

#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "shard/error.hpp"

namespace shard::python {

namespace nb = nanobind;

inline constexpr std::chrono::milliseconds kTick{50};

// A thread that asks for the GIL while the interpreter ends does not get it. Before Python 3.14 it is ended
// then, by unwinding its stack, which C++ functions do not survive: the process would abort. So it stays here
// until the process has ended, as it does from Python 3.14 on.
template <class Take>
auto take_gil(Take take) noexcept {
  try {
    return take();
  } catch (abi::__forced_unwind&) {
    for (;;) ::pause();
  }
}

// Releases the GIL for as long as it lives.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;
  ~WithoutGil() {
    take_gil([this] { PyEval_RestoreThread(state_); });
  }

 private:
  PyThreadState* state_;
};

// Holds the GIL for as long as it lives. For any thread.
class WithGil {
 public:
  WithGil() : state_(take_gil([] { return PyGILState_Ensure(); })) {}
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;
  ~WithGil() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

// A pointer that any thread may read and take at any time. Thread safe. Who reads it keeps the object alive.
template <class T>
class SharedPointer {
 public:
  void set(std::shared_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    object_ = std::move(object);
  }
  std::shared_ptr<T> get() const {
    const std::lock_guard lock(mutex_);
    return object_;
  }
  // Nothing is left.
  std::shared_ptr<T> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(object_, nullptr);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<T> object_;
};

// Calls `step` without the GIL until it returns true. An exception of a signal handler ends it.
template <class Step>
void wait_with_signals(Step step) {
  for (;;) {
    bool over = false;
    {
      WithoutGil without_gil;
      over = step();
    }
    if (over) return;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

// Text of the library: UTF-8, but for bytes of paths, which are escaped.
nb::str text(std::string_view bytes);

// The class of shardloader._errors.
const char* error_class(ErrorCode code);

void bind_augment(nb::module_& module);
void bind_errors();
void bind_tensor(nb::module_& module);
void bind_dataset(nb::module_& module);
void bind_jpeg(nb::module_& module);
void bind_loader(nb::module_& module);
void bind_selection(nb::module_& module);
void bind_convert(nb::module_& module);
void bind_writer(nb::module_& module);
void bind_machine(nb::module_& module);

}  // namespace shard::python
