// The functions of nvJPEG that are used, and owners of its objects. The library is looked for when the
// program runs: shardbench starts without it.
#pragma once

#include <nvjpeg.h>

#include <string>

namespace shard::bench {

struct Nvjpeg {
  decltype(&::nvjpegCreateEx) create = nullptr;
  decltype(&::nvjpegDestroy) destroy = nullptr;
  decltype(&::nvjpegJpegStateCreate) create_state = nullptr;
  decltype(&::nvjpegJpegStateDestroy) destroy_state = nullptr;
  decltype(&::nvjpegJpegStreamCreate) create_stream = nullptr;
  decltype(&::nvjpegJpegStreamDestroy) destroy_stream = nullptr;
  decltype(&::nvjpegJpegStreamParseHeader) parse_header = nullptr;
  decltype(&::nvjpegDecodeBatchedSupported) supported = nullptr;
  decltype(&::nvjpegGetImageInfo) image_info = nullptr;
  decltype(&::nvjpegDecodeBatchedInitialize) initialize = nullptr;
  decltype(&::nvjpegDecodeBatched) decode = nullptr;
  decltype(&::nvjpegGetProperty) property = nullptr;

  void check(nvjpegStatus_t status, const char* what) const;  // throws resource or io
  std::string version() const;
};

const Nvjpeg& nvjpeg();  // stays loaded; throws unsupported

class NvjpegHandle {
 public:
  explicit NvjpegHandle(nvjpegBackend_t backend);
  NvjpegHandle(const NvjpegHandle&) = delete;
  NvjpegHandle& operator=(const NvjpegHandle&) = delete;
  ~NvjpegHandle() { nvjpeg().destroy(handle_); }
  nvjpegHandle_t get() const noexcept { return handle_; }

 private:
  nvjpegHandle_t handle_ = nullptr;
};

class NvjpegState {
 public:
  NvjpegState(const NvjpegHandle& handle, int batch);
  NvjpegState(const NvjpegState&) = delete;
  NvjpegState& operator=(const NvjpegState&) = delete;
  ~NvjpegState() { nvjpeg().destroy_state(state_); }
  nvjpegJpegState_t get() const noexcept { return state_; }

 private:
  nvjpegJpegState_t state_ = nullptr;
};

}  // namespace shard::bench
