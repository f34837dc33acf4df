// Turns libjpeg's error callbacks into shard::Error. No exception passes through libjpeg's stack frames.
// Included by the jpeg*.cpp files only: no other file names jpeglib.
#pragma once

#include <cstddef>
#include <cstdio>
// jpeglib.h needs the two above
#include <jpeglib.h>

#include <csetjmp>
#include <utility>

#include "shard/image/warnings.hpp"

namespace shard::image {

class JpegErrors {
 public:
  JpegErrors() noexcept;  // every warning is an error
  JpegErrors(const JpegErrors&) = delete;
  JpegErrors& operator=(const JpegErrors&) = delete;
  jpeg_error_mgr* manager() noexcept { return &base_.manager; }
  // Forgets everything about the last file.
  void reset(OnWarning on_warning) noexcept;
  // The accepted warnings since reset() or since the last call of this function.
  WarningSet take_warnings() noexcept { return std::exchange(base_.warnings, {}); }

  // Runs `body`, which calls libjpeg. An error, or a warning that may not pass, leaves it by longjmp and
  // becomes an Error here, so `body` and what it calls hold no object with a destructor.
  template <typename Body>
  void guard(const Body& body) {
    if (setjmp(base_.jump) != 0) raise();
    body();
  }

  // From within `body`: the caller's wish to stop; leaves by longjmp.
  [[noreturn]] void cancel() noexcept;
  // From within `body`: a bound of ours that the file exceeds (resource); `message` is a literal.
  [[noreturn]] void too_much(const char* message) noexcept;

 private:
  enum class Reason { library, cancelled, too_much };
  struct Base {  // standard layout, the manager first: libjpeg hands back a pointer to it
    jpeg_error_mgr manager{};
    std::jmp_buf jump{};
    Reason reason = Reason::library;
    OnWarning on_warning = OnWarning::reject;
    WarningSet warnings;
    char message[JMSG_LENGTH_MAX] = {};
  };

  static void leave(j_common_ptr info);
  static void on_message(j_common_ptr info, int level);
  [[noreturn]] void raise() const;

  Base base_;
};

}  // namespace shard::image
