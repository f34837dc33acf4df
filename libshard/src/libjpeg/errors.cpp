#include "libjpeg/errors.hpp"

#include <jerror.h>

#include <cstring>
#include <string>

#include "shard/error.hpp"

namespace shard::libjpeg {
namespace {

ErrorCode code_of(int message_code) {
  switch (message_code) {
    case JERR_OUT_OF_MEMORY:
      return ErrorCode::resource;
#if JPEG_LIB_VERSION < 70  // Debian's ABI; Ubuntu's is 80, which always knows arithmetic coding
    case JERR_ARITH_NOTIMPL:
#endif
    case JERR_BAD_PRECISION:
    case JERR_CCIR601_NOTIMPL:
    case JERR_COMPONENT_COUNT:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_IMAGE_TOO_BIG:
    case JERR_NOT_COMPILED:
    case JERR_SOF_UNSUPPORTED:
    case JERR_WIDTH_OVERFLOW:
      return ErrorCode::unsupported;
    default:
      return ErrorCode::corrupt;
  }
}

}  // namespace

void Errors::reset(Passes passes, void* context) noexcept {
  base_ = Base{};
  base_.passes = passes;
  base_.context = context;
  jpeg_std_error(&base_.manager);
  base_.manager.error_exit = leave;
  base_.manager.emit_message = on_message;
}

void Errors::leave(j_common_ptr info) {
  auto* base = reinterpret_cast<Base*>(info->err);
  base->reason = Reason::library;
  base->manager.format_message(info, base->message);
  std::longjmp(base->jump, 1);
}

void Errors::on_message(j_common_ptr info, int level) {
  if (level >= 0) return;  // a trace
  auto* base = reinterpret_cast<Base*>(info->err);
  ++base->manager.num_warnings;
  if (base->passes == nullptr || !base->passes(base->context, base->manager.msg_code)) leave(info);
}

void Errors::cancel() noexcept {
  base_.reason = Reason::cancelled;
  std::longjmp(base_.jump, 1);
}

void Errors::too_much(const char* message) noexcept {
  base_.reason = Reason::too_much;
  std::strncpy(base_.message, message, sizeof base_.message - 1);
  std::longjmp(base_.jump, 1);
}

void Errors::raise() const {
  if (base_.reason == Reason::cancelled) throw Error(ErrorCode::cancelled, "JPEG: decoding was cancelled");
  const ErrorCode code =
      base_.reason == Reason::too_much ? ErrorCode::resource : code_of(base_.manager.msg_code);
  if (base_.reason == Reason::library && code == ErrorCode::resource)
    throw Error(code, "JPEG: no memory for the image: free some, or run fewer jobs");
  throw Error(code, "JPEG: " + std::string(base_.message));
}

}  // namespace shard::libjpeg
