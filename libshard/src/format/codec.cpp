#include "shard/codec.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "format/codec_zstd.hpp"
#include "shard/error.hpp"

namespace shard {

std::vector<std::byte> encode_frame(const Codec& codec, std::span<const std::byte> sample) {
  if (codec.kind == Codec::Kind::zstd) return zstd_compress(sample, codec.level);
  return {sample.begin(), sample.end()};
}

void decode_frame(const Codec& codec, std::span<const std::byte> frame, std::span<std::byte> sample) {
  if (codec.kind == Codec::Kind::zstd) return zstd_decompress(frame, sample);
  if (frame.size() != sample.size())
    throw Error(ErrorCode::corrupt, fmt::format("a frame of {} bytes where a sample of {} is stored as it is",
                                                frame.size(), sample.size()));
  std::copy(frame.begin(), frame.end(), sample.begin());
}

}  // namespace shard
