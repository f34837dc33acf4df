#include "lease.hpp"

namespace shard::python {

CurrentStream::CurrentStream(const nb::object& ask) {
  if (!ask.is_none()) ask_ = nb::object(ask).release().ptr();
}

CurrentStream::~CurrentStream() {
  if (ask_ == nullptr || !nb::is_alive()) return;  // the interpreter is gone, and its objects with it
  WithGil gil;
  Py_DECREF(ask_);
}

std::optional<StreamRef> CurrentStream::get() noexcept {
  if (ask_ == nullptr || !nb::is_alive()) return std::nullopt;
  WithGil gil;
  nb::error_scope keeps_a_raised_exception;
  std::optional<StreamRef> stream;
  if (PyObject* const number = PyObject_CallNoArgs(ask_)) {
    const unsigned long long value = PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred() == nullptr) stream = stream_of(value);
    Py_DECREF(number);
  }
  PyErr_Clear();
  return stream;
}

Lease::~Lease() {
  if (!current_ || ::getpid() != process_ || batch_.ids().data() == nullptr) return;
  try {
    if (const std::optional<StreamRef> now = current_->get()) batch_.remember(*now);
  } catch (...) {  // no memory to remember it: the streams that ordered the batch are known
  }
}

}  // namespace shard::python
