// ShardReader: one shard file, mapped and checked. An object exists only for a file that keeps every rule of
// docs/format.md.
//
// The mapping is read-only and shared, made over a close-on-exec descriptor whose size was held against the
// header. Views (keys, labels, frames) borrow from the reader. Const members may be called from several
// threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shard/codec.hpp"
#include "shard/safetensors.hpp"
#include "shard/sample_spec.hpp"

namespace shard {

// Everything the header of a shard says, checked against the profile (docs/format.md).
struct ShardHeader {
  SafetensorsHeader tensors;
  std::uint64_t samples = 0;
  SampleSpec spec;
  Normalization normalization;
  Pipeline pipeline;
  Codec codec;
  std::string fingerprint;  // 16 hexadecimal digits over all options that shape the bytes
  std::uint64_t head_digest =
      0;  // XXH3-64 of the bytes before `images` / `image_frames`, digest field as zeros
  std::uint64_t images_begin = 0;  // file offset of `images` or `image_frames`, a multiple of 4096
  std::uint64_t images_end = 0;    // = file size
};

// Pure: throws corrupt or unsupported, naming the rule. `head` as for parse_safetensors.
ShardHeader parse_shard_header(std::span<const std::byte> head, std::uint64_t file_size_bytes);

// A tensor whose first axis is the sample: delivered with each sample.
struct Column {
  DType dtype = DType::i64;
  std::vector<std::uint64_t> row_shape;  // without the sample axis; empty for [N]
  std::uint64_t row_bytes = 0;
  std::span<const std::byte> bytes;  // samples x row_bytes, C order, little-endian
};

class ShardReader {
 public:
  // Errors: not_found, io, corrupt, unsupported, resource; each names the path.
  static ShardReader open(const std::filesystem::path& path);
  ShardReader(ShardReader&&) noexcept;
  ShardReader& operator=(ShardReader&&) noexcept;
  ~ShardReader();

  const std::filesystem::path& path() const noexcept;
  const ShardHeader& header() const noexcept;
  std::uint64_t size() const noexcept;  // samples
  std::uint64_t file_size_bytes() const noexcept;
  int descriptor() const noexcept;                      // stays owned by the reader
  std::span<const std::byte> mapping() const noexcept;  // the whole file

  std::string_view key(std::uint64_t sample) const;    // throws invalid_argument when sample >= size()
  std::uint64_t checksum(std::uint64_t sample) const;  // XXH3-64 of the sample before the codec
  const std::map<std::string, Column>& columns() const noexcept;  // "labels" and further ones
  // Label of a sample when labels are I64 [N]; throws unsupported otherwise.
  std::int64_t label(std::uint64_t sample) const;

  // The sample as it is stored: a row of spec().size_bytes() bytes (codec none), or one frame.
  std::span<const std::byte> frame(std::uint64_t sample) const;
  // What turns a frame into a sample: codec().decode(bytes of a frame, sample).
  const SampleCodec& codec() const noexcept;
  // The sample's bytes into `out` (spec.size_bytes() long), decompressed where the codec needs it.
  // Errors: corrupt, naming path and sample, when a frame does not hold exactly one sample.
  void read(std::uint64_t sample, std::span<std::byte> out) const;

  // Whole-head check: head digest, key order and UTF-8 rules. Throws corrupt.
  void verify_head() const;
  // Checks the stored frame and the decoded sample against their XXH3-64; `scratch` is resized as needed.
  // Throws corrupt.
  void verify_sample(std::uint64_t sample, std::vector<std::byte>& scratch) const;

 private:
  struct Impl;
  explicit ShardReader(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shard
