#include "image/codecs/jpeg_errors.hpp"

#include <jerror.h>

#include <cstring>
#include <string>

#include "shard/error.hpp"

namespace shard::image {
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

Warning warning_of(int message_code) noexcept {
  switch (message_code) {
    case JWRN_ADOBE_XFORM:
      return Warning::adobe_transform;
    case JWRN_ARITH_BAD_CODE:
      return Warning::arithmetic_code;
    case JWRN_BOGUS_PROGRESSION:
      return Warning::progression;
    case JWRN_EXTRANEOUS_DATA:
      return Warning::extraneous_bytes;
    case JWRN_HIT_MARKER:
      return Warning::premature_marker;
    case JWRN_HUFF_BAD_CODE:
      return Warning::huffman_code;
    case JWRN_JFIF_MAJOR:
      return Warning::jfif_version;
    case JWRN_JPEG_EOF:
      return Warning::premature_end;
    case JWRN_MUST_RESYNC:
      return Warning::restart_marker;
    case JWRN_NOT_SEQUENTIAL:
      return Warning::scan_parameters;
    case JWRN_BOGUS_ICC:
      return Warning::icc_profile;
    default:
      return Warning::other;
  }
}

}  // namespace

JpegErrors::JpegErrors() noexcept { reset(OnWarning::reject); }

void JpegErrors::reset(OnWarning on_warning) noexcept {
  base_ = Base{};
  base_.on_warning = on_warning;
  jpeg_std_error(&base_.manager);
  base_.manager.error_exit = leave;
  base_.manager.emit_message = on_message;
}

void JpegErrors::leave(j_common_ptr info) {
  auto* base = reinterpret_cast<Base*>(info->err);
  base->reason = Reason::library;
  base->manager.format_message(info, base->message);
  std::longjmp(base->jump, 1);
}

void JpegErrors::on_message(j_common_ptr info, int level) {
  if (level >= 0) return;  // a trace
  auto* base = reinterpret_cast<Base*>(info->err);
  ++base->manager.num_warnings;
  const Warning warning = warning_of(base->manager.msg_code);
  const bool passes = base->on_warning == OnWarning::accept ||
                      (base->on_warning == OnWarning::harmless && is_harmless(warning));
  if (!passes) leave(info);
  base->warnings.add(warning);
}

void JpegErrors::cancel() noexcept {
  base_.reason = Reason::cancelled;
  std::longjmp(base_.jump, 1);
}

void JpegErrors::too_much(const char* message) noexcept {
  base_.reason = Reason::too_much;
  std::strncpy(base_.message, message, sizeof base_.message - 1);
  std::longjmp(base_.jump, 1);
}

void JpegErrors::raise() const {
  if (base_.reason == Reason::cancelled) throw Error(ErrorCode::cancelled, "JPEG: decoding was cancelled");
  const ErrorCode code =
      base_.reason == Reason::too_much ? ErrorCode::resource : code_of(base_.manager.msg_code);
  throw Error(code, "JPEG: " + std::string(base_.message));
}

}  // namespace shard::image
