#include "image/codecs/jpeg_errors.hpp"

#include <jerror.h>

namespace shard::image {
namespace {

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

void JpegErrors::reset(OnWarning on_warning) noexcept {
  Errors::reset(passes, this);
  on_warning_ = on_warning;
  warnings_ = {};
}

bool JpegErrors::passes(void* self, int code) noexcept {
  JpegErrors& errors = *static_cast<JpegErrors*>(self);
  const Warning warning = warning_of(code);
  const bool passes = errors.on_warning_ == OnWarning::accept ||
                      (errors.on_warning_ == OnWarning::harmless && is_harmless(warning));
  if (passes) errors.warnings_.add(warning);
  return passes;
}

}  // namespace shard::image
