// The errors of libjpeg, and which of its warnings pass (OnWarning).
// Included by the jpeg*.cpp files only: no other file of this layer names jpeglib.
#pragma once

#include <utility>

#include "libjpeg/errors.hpp"
#include "shard/image/warnings.hpp"

namespace shard::image {

class JpegErrors : public libjpeg::Errors {
 public:
  // Forgets everything about the last file.
  void reset(OnWarning on_warning) noexcept;
  // The accepted warnings since reset() or since the last call of this function.
  WarningSet take_warnings() noexcept { return std::exchange(warnings_, {}); }

 private:
  static bool passes(void* self, int code) noexcept;

  OnWarning on_warning_ = OnWarning::reject;
  WarningSet warnings_;
};

}  // namespace shard::image
