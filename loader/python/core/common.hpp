// What the sources of the extension `shardloader._core` share.
//
// The GIL guards what Python objects hold; calls into the library that may block run without it. Waits come
// back every kTick to let Python's signal handlers run (KeyboardInterrupt).
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <string>
#include <string_view>

namespace shard::python {

namespace nb = nanobind;

inline constexpr std::chrono::milliseconds kTick{50};

// Calls `step` without the GIL until it returns true. An exception of a signal handler ends it.
template <class Step>
void wait_with_signals(Step step) {
  for (;;) {
    bool over = false;
    {
      nb::gil_scoped_release without_gil;
      over = step();
    }
    if (over) return;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

// Text of the library: UTF-8, but for bytes of paths, which are escaped.
nb::str text(std::string_view bytes);

void bind_augment(nb::module_& module);
void bind_errors();
void bind_tensor(nb::module_& module);
void bind_dataset(nb::module_& module);
void bind_loader(nb::module_& module);
void bind_selection(nb::module_& module);
void bind_convert(nb::module_& module);
void bind_writer(nb::module_& module);

}  // namespace shard::python
