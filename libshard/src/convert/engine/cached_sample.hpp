// CachedSample: one input of a conversion as a worker would store it, in bytes of its own, so that somebody
// else can store it later. Pure functions on bytes.
//
//   u32 flags | u32 warnings | u64 digest of the input | u32 jpeg use | u32 images, or bytes of the reason
//   then the reason of a reject, or for each image
//     u32 rows | u32 columns | u64 bytes | u32[4] file of a frame | u64 checksum of its sample | the bytes
//
// All numbers are little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shard/convert/jpeg_counts.hpp"
#include "shard/image/warnings.hpp"
#include "shard/shard_writer.hpp"

namespace shard::convert {

struct CachedSample {
  // XXH3-64 of the input and its further images. Nothing: it could not be read.
  std::optional<std::uint64_t> digest;
  // Of an input that is a reject: why. Then nothing below counts.
  std::optional<std::string> reject;
  image::WarningSet warnings;
  std::optional<JpegUse> jpeg;
  // Of the image, then of further fields: what ShardWriter::put() takes.
  std::vector<SampleValues> images;
};

// The bytes in pieces, one after the other: heads, which are in `heads`, and the spans of the sample.
struct SamplePieces {
  std::vector<std::byte> heads;
  std::vector<std::span<const std::byte>> pieces;
};
SamplePieces serialize_sample(const CachedSample& sample);
// Its spans are views of `bytes`. Nothing: these bytes are no sample.
std::optional<CachedSample> parse_sample(std::span<const std::byte> bytes);

}  // namespace shard::convert
