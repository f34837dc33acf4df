// Memory that libjpeg writes a file to. Unlike that of jpeg_mem_dest, whose address is known only at the end
// of the file, it can be left by longjmp at any moment.
#pragma once

#include <cstddef>
#include <cstdio>
// jpeglib.h needs the two above
#include <jpeglib.h>
// ERREXIT1, after jpeglib.h
#include <jerror.h>

#include <cstdlib>
#include <vector>

namespace shard::libjpeg {

// One file. It lives longer than the jpeg_compress_struct that it is attached to, and at the same address.
class Output {
 public:
  Output() {
    manager_.init_destination = [](j_compress_ptr info) { of(info).lend(); };
    manager_.empty_output_buffer = [](j_compress_ptr info) -> boolean {
      Output& output = of(info);
      output.used_ = output.size_;
      if (!output.grow()) ERREXIT1(info, JERR_OUT_OF_MEMORY, 0);
      output.lend();
      return TRUE;
    };
    manager_.term_destination = [](j_compress_ptr info) {
      Output& output = of(info);
      output.used_ = output.size_ - output.manager_.free_in_buffer;
    };
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() { std::free(bytes_); }

  // Takes `info.client_data`. False: there is no memory.
  bool attach(jpeg_compress_struct& info) {
    info.client_data = this;
    info.dest = &manager_;
    return size_ != 0 || grow();
  }
  // After jpeg_finish_compress().
  std::vector<std::byte> take() const {
    const auto* first = reinterpret_cast<const std::byte*>(bytes_);
    return {first, first + used_};
  }

 private:
  static constexpr std::size_t kFirstBytes = std::size_t{1} << 16;
  static Output& of(j_compress_ptr info) { return *static_cast<Output*>(info->client_data); }
  bool grow() {
    const std::size_t more = size_ == 0 ? kFirstBytes : 2 * size_;
    void* const bytes = std::realloc(bytes_, more);
    if (bytes == nullptr) return false;
    bytes_ = static_cast<unsigned char*>(bytes);
    size_ = more;
    return true;
  }
  void lend() {
    manager_.next_output_byte = bytes_ + used_;
    manager_.free_in_buffer = size_ - used_;
  }

  jpeg_destination_mgr manager_{};
  unsigned char* bytes_ = nullptr;
  std::size_t size_ = 0;
  std::size_t used_ = 0;
};

}  // namespace shard::libjpeg
