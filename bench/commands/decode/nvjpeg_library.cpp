#include "commands/decode/nvjpeg_library.hpp"

#include <fmt/core.h>

#include "harness/shared_library.hpp"
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
    const auto file = [](int major) { return fmt::format("libnvjpeg.so.{}", major); };
    const SharedLibrary library_file("nvJPEG", {file(NVJPEG_VER_MAJOR), file(13), file(12)});
    Nvjpeg found;
    library_file.get(found.create, "nvjpegCreateEx");
    library_file.get(found.destroy, "nvjpegDestroy");
    library_file.get(found.create_state, "nvjpegJpegStateCreate");
    library_file.get(found.destroy_state, "nvjpegJpegStateDestroy");
    library_file.get(found.create_stream, "nvjpegJpegStreamCreate");
    library_file.get(found.destroy_stream, "nvjpegJpegStreamDestroy");
    library_file.get(found.parse_header, "nvjpegJpegStreamParseHeader");
    library_file.get(found.supported, "nvjpegDecodeBatchedSupported");
    library_file.get(found.image_info, "nvjpegGetImageInfo");
    library_file.get(found.initialize, "nvjpegDecodeBatchedInitialize");
    library_file.get(found.decode, "nvjpegDecodeBatched");
    library_file.get(found.property, "nvjpegGetProperty");
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
