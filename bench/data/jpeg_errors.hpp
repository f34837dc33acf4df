// libjpeg's errors and warnings as shard::Error. No exception passes through its stack frames.
#pragma once

#include <cstddef>
#include <cstdio>
// jpeglib.h needs the two above
#include <jpeglib.h>

#include <csetjmp>

#include "shard/error.hpp"

namespace shard::bench {

class JpegErrors {
 public:
  // For a jpeg_compress_struct or jpeg_decompress_struct, before it is created.
  jpeg_error_mgr* manager() noexcept {
    jpeg_std_error(&base_.manager);
    base_.manager.error_exit = leave;
    base_.manager.emit_message = [](j_common_ptr info, int level) {
      if (level < 0) leave(info);  // a warning
    };
    return &base_.manager;
  }
  // Runs `body`, which calls libjpeg and is left by longjmp: it and what it calls hold no object with a
  // destructor. Throws corrupt, with libjpeg's message.
  template <class Body>
  void guard(const Body& body) {
    if (setjmp(base_.jump) != 0) throw Error(ErrorCode::corrupt, base_.message);
    body();
  }

 private:
  struct Base {  // standard layout, the manager first: libjpeg hands back a pointer to it
    jpeg_error_mgr manager{};
    std::jmp_buf jump{};
    char message[JMSG_LENGTH_MAX] = {};
  };
  [[noreturn]] static void leave(j_common_ptr info) {
    auto* base = reinterpret_cast<Base*>(info->err);
    base->manager.format_message(info, base->message);
    std::longjmp(base->jump, 1);
  }

  Base base_;
};

}  // namespace shard::bench
