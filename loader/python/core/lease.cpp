#include "lease.hpp"

#include <algorithm>

namespace shard::python {

Streams::Streams(std::shared_ptr<Device> device, const nb::object& current) : device_(std::move(device)) {
  if (!current.is_none()) current_ = nb::object(current).release().ptr();
}

Streams::~Streams() {
  if (current_ == nullptr || !nb::is_alive()) return;  // the interpreter is gone, and its objects with it
  nb::gil_scoped_acquire gil;
  Py_DECREF(current_);
}

std::optional<void*> Streams::current() noexcept {
  if (current_ == nullptr || !nb::is_alive()) return std::nullopt;
  nb::gil_scoped_acquire gil;
  nb::error_scope keeps_a_raised_exception;
  std::optional<void*> stream;
  if (PyObject* const number = PyObject_CallNoArgs(current_)) {
    const unsigned long long value = PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred() == nullptr) stream = stream_handle(value);
    Py_DECREF(number);
  }
  PyErr_Clear();
  return stream;
}

void Streams::release_after(Batch& batch, const std::vector<void*>& streams) {
  if (streams.size() == 1) return batch.release(streams.front());
  std::lock_guard lock(mutex_);
  if (!joiner_) joiner_ = device_->create_stream();
  for (void* stream : streams) joiner_->wait(device_->record_native(stream));
  batch.release(joiner_->native());
}

void Lease::wait_on(void* stream) {
  batch_.wait_on(stream);
  if (stream == nullptr || !streams_) return;
  std::lock_guard lock(mutex_);
  if (std::find(used_.begin(), used_.end(), stream) == used_.end()) used_.push_back(stream);
}

Lease::~Lease() {
  if (!streams_ || ::getpid() != process_ || batch_.images() == nullptr) return;
  if (const std::optional<void*> now = streams_->current();
      now && std::find(used_.begin(), used_.end(), *now) == used_.end())
    used_.push_back(*now);
  if (used_.empty()) return;  // nobody was told where it is
  try {
    streams_->release_after(batch_, used_);
  } catch (...) {  // a lost device, which the loader's next call reports
  }
}

}  // namespace shard::python
