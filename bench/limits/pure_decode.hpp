// The limit of conversion: libjpeg-turbo decodes JPEGs in memory to RGB, and nothing else is done.
//
// This is as fast as jpeglib's interface allows. One decompressor is reused, with its defaults (ISLOW, fancy
// upsampling), and rows go to a strip that stays in the cache. No image is kept. CMYK and YCCK give CMYK,
// because jpeglib has no conversion to RGB for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace shard::bench {

class PureDecoder {  // each thread has its own
 public:
  PureDecoder();
  PureDecoder(PureDecoder&&) noexcept;
  PureDecoder& operator=(PureDecoder&&) noexcept;
  ~PureDecoder();

  // Returns the number of decoded pixels. 0: the file is not a JPEG, or there was an error or a warning;
  // problem() has the reason. min_short_side: decode by a scaled DCT to the smallest size whose short side is
  // at least this. 0: at full size.
  std::uint64_t decode(std::span<const std::byte> file, std::uint32_t min_short_side = 0);
  std::string problem() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shard::bench
