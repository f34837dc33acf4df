// Turns libjpeg's error callbacks into shard::Error. No exception passes through libjpeg's stack frames.
// Beside the files of this folder, only image/codecs/jpeg*.cpp name jpeglib, through this header.
#pragma once

#include <cstddef>
#include <cstdio>
// jpeglib.h needs the two above
#include <jpeglib.h>

#include <csetjmp>

namespace shard::libjpeg {

class Errors {
 public:
  // Whether libjpeg goes on after warning `code` (JWRN_*). Runs within libjpeg.
  using Passes = bool (*)(void* context, int code) noexcept;

  Errors() noexcept { reset(); }
  Errors(const Errors&) = delete;
  Errors& operator=(const Errors&) = delete;
  jpeg_error_mgr* manager() noexcept { return &base_.manager; }
  // Forgets everything about the last file. Null: every warning is an error.
  void reset(Passes passes = nullptr, void* context = nullptr) noexcept;

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
    Passes passes = nullptr;
    void* context = nullptr;
    char message[JMSG_LENGTH_MAX] = {};
  };

  static void leave(j_common_ptr info);
  static void on_message(j_common_ptr info, int level);
  [[noreturn]] void raise() const;

  Base base_;
};

}  // namespace shard::libjpeg
