// The bytes of a Python object with the buffer protocol, in C order.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "common.hpp"

namespace shard::python {

// While this lives. With the GIL.
class BufferView {
 public:
  explicit BufferView(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
    held_ = true;
  }
  BufferView(BufferView&& other) noexcept : view_(other.view_), held_(std::exchange(other.held_, false)) {}
  BufferView(const BufferView&) = delete;
  BufferView& operator=(const BufferView&) = delete;
  ~BufferView() {
    if (held_) PyBuffer_Release(&view_);
  }

  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }
  std::vector<std::byte> copy() const { return {bytes().begin(), bytes().end()}; }

 private:
  Py_buffer view_{};
  bool held_ = false;
};

}  // namespace shard::python
