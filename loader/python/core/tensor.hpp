// Memory of the library as Python sees it: DLPack, and on the host the buffer protocol (so numpy.asarray).
#pragma once

#include <memory>
#include <vector>

#include "common.hpp"
#include "lease.hpp"
#include "shard/dtype.hpp"
#include "shard/loader/dlpack.hpp"

namespace shard::python {

// Contiguous, C order. A view: `owner` keeps the memory alive, and with it what it belongs to (a batch, a
// data set); everything made from the tensor holds `owner` too.
struct Tensor {
  std::shared_ptr<void> owner;
  const std::byte* data = nullptr;
  DType dtype = DType::u8;
  std::vector<Py_ssize_t> shape;
  DLDevice device{kDLCPU, 0};
  bool writable = false;         // memory that is the holder's alone
  std::shared_ptr<Lease> lease;  // of a batch: whose consumers' streams it must know

  std::vector<Py_ssize_t> strides(std::size_t unit_bytes) const;
  std::size_t size_bytes() const;
};

}  // namespace shard::python
