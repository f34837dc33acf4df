// The limit of conversion: JPEGs from memory to RGB by libjpeg-turbo and nothing else.
//
// As fast as jpeglib's interface allows: one decompressor reused, its defaults (ISLOW, fancy upsampling),
// rows into a strip that stays in the cache. No picture is kept. CMYK and YCCK give CMYK, as jpeglib offers
// no RGB for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace shard::bench {

class PureDecoder {  // one a thread
 public:
  PureDecoder();
  PureDecoder(PureDecoder&&) noexcept;
  PureDecoder& operator=(PureDecoder&&) noexcept;
  ~PureDecoder();

  // Pixels decoded; 0 when it is no JPEG or does not decode without an error or warning: problem() says why.
  // min_short_side: the scaled DCT down to the smallest size whose short side is at least this; 0: in full.
  std::uint64_t decode(std::span<const std::byte> file, std::uint32_t min_short_side = 0);
  std::string problem() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shard::bench
