// The C structures of DLPack 1.0, as its specification defines them
// (https://dmlc.github.io/dlpack/latest/c_api.html). If <dlpack/dlpack.h> is included before this header, its
// structures are used instead.
#pragma once

#include <cstdint>

#include "shard/dtype.hpp"

#ifndef DLPACK_DLPACK_H_

inline constexpr std::uint32_t kDLPackMajorVersion = 1;
inline constexpr std::uint32_t kDLPackMinorVersion = 0;
inline constexpr std::uint64_t kDLPackFlagReadOnly = 1;

struct DLPackVersion {
  std::uint32_t major;
  std::uint32_t minor;
};

enum DLDeviceType : std::int32_t { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3 };

struct DLDevice {
  DLDeviceType device_type;
  std::int32_t device_id;
};

enum DLDataTypeCode : std::uint8_t { kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLBfloat = 4, kDLBool = 6 };

struct DLDataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements
  std::uint64_t byte_offset;
};

struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  std::uint64_t flags;
  DLTensor dl_tensor;
};

#endif

namespace shard {

// With one lane.
DLDataType dlpack_dtype(DType dtype);

}  // namespace shard
