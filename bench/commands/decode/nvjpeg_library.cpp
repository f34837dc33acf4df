#include "commands/decode/nvjpeg_library.hpp"

#include <dlfcn.h>

#include <cstring>

#include <fmt/core.h>

#include "shard/error.hpp"

namespace shard::bench {

void Nvjpeg::check(nvjpegStatus_t status, const char* what) const {
  if (status == NVJPEG_STATUS_SUCCESS) return;
  throw Error(status == NVJPEG_STATUS_ALLOCATOR_FAILURE ? ErrorCode::resource : ErrorCode::io,
              fmt::format("nvJPEG: {}: status {}", what, static_cast<int>(status)));
}

std::string Nvjpeg::version() const {
  int numbers[3] = {0, 0, 0};
  property(MAJOR_VERSION, &numbers[0]);
  property(MINOR_VERSION, &numbers[1]);
  property(PATCH_LEVEL, &numbers[2]);
  return fmt::format("{}.{}.{}", numbers[0], numbers[1], numbers[2]);
}

const Nvjpeg& nvjpeg() {
  static const Nvjpeg library = [] {
    void* handle = nullptr;
    std::string reason, file;
    for (const int major : {NVJPEG_VER_MAJOR, 13, 12}) {
      for (const char* folder : {"", "/usr/local/cuda/lib64/"}) {
        file = fmt::format("{}libnvjpeg.so.{}", folder, major);
        if (handle == nullptr) handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (handle != nullptr) break;
        if (reason.empty()) reason = ::dlerror();
      }
      if (handle != nullptr) break;
    }
    if (handle == nullptr) throw Error(ErrorCode::unsupported, "nvJPEG cannot be loaded: " + reason);
    Nvjpeg found;
    const auto get = [&](auto& function, const char* name) {
      void* const symbol = ::dlsym(handle, name);
      if (symbol == nullptr) throw Error(ErrorCode::unsupported, fmt::format("{} has no {}", file, name));
      std::memcpy(&function, &symbol, sizeof symbol);
    };
    get(found.create, "nvjpegCreateEx");
    get(found.destroy, "nvjpegDestroy");
    get(found.create_state, "nvjpegJpegStateCreate");
    get(found.destroy_state, "nvjpegJpegStateDestroy");
    get(found.create_stream, "nvjpegJpegStreamCreate");
    get(found.destroy_stream, "nvjpegJpegStreamDestroy");
    get(found.parse_header, "nvjpegJpegStreamParseHeader");
    get(found.supported, "nvjpegDecodeBatchedSupported");
    get(found.image_info, "nvjpegGetImageInfo");
    get(found.initialize, "nvjpegDecodeBatchedInitialize");
    get(found.decode, "nvjpegDecodeBatched");
    get(found.property, "nvjpegGetProperty");
    return found;
  }();
  return library;
}

NvjpegHandle::NvjpegHandle(nvjpegBackend_t backend) {
  nvjpeg().check(nvjpeg().create(backend, nullptr, nullptr, NVJPEG_FLAGS_DEFAULT, &handle_),
                 "nvjpegCreateEx");
}

NvjpegState::NvjpegState(const NvjpegHandle& handle, int batch) {
  nvjpeg().check(nvjpeg().create_state(handle.get(), &state_), "nvjpegJpegStateCreate");
  const nvjpegStatus_t status = nvjpeg().initialize(handle.get(), state_, batch, 1, NVJPEG_OUTPUT_RGBI);
  if (status != NVJPEG_STATUS_SUCCESS) nvjpeg().destroy_state(state_);
  nvjpeg().check(status, "nvjpegDecodeBatchedInitialize");
}

}  // namespace shard::bench
