// The table of codecs: what is different from one codec to the next is in its row. A new one is a value of
// CodecSpec::Kind, a file beside this one, a row in codecs.cpp, and a row in stored_form.cpp of the loader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "shard/codec.hpp"
#include "shard/dataset_spec.hpp"

namespace shard {

// Encodes and decodes samples, as Codec says, which has checked their size. `of`: what the sample is: the
// spec that the coder was made for, with the sample's own rows and columns if that is free. Immutable and
// thread safe.
class Coder {
 public:
  Coder() = default;
  Coder(const Coder&) = delete;
  Coder& operator=(const Coder&) = delete;
  virtual ~Coder() = default;

  // Sets of.file, if the codec has files.
  virtual std::vector<std::byte> encode(FrameSpec& of, std::span<const std::byte> sample) const = 0;
  virtual void decode(const FrameSpec& of, std::span<const std::byte> frame,
                      std::span<std::byte> sample) const = 0;
  virtual void decode_part(const FrameSpec& of, std::span<const std::byte> frame, std::span<std::byte> sample,
                           const SampleBox& /*box*/) const {
    decode(of, frame, sample);
  }
  virtual std::uint64_t least_frame_bytes(const FrameSpec& of) const noexcept = 0;
  // No codec makes frames as large: what reads one takes memory for it.
  virtual std::uint64_t most_frame_bytes(const FrameSpec& of) const noexcept {
    return 4 * of.sample.size_bytes() + (std::uint64_t{1} << 20U);
  }
  virtual void check_file(const FrameSpec& /*of*/) const {}
  virtual void check_frame(const FrameSpec& /*of*/, std::span<const std::byte> /*frame*/) const {}
  virtual void verify(const FrameSpec& /*of*/, std::span<const std::byte> /*frame*/) const {}
};

using MakeCoder = std::shared_ptr<const Coder>(const CodecSpec& codec, const SampleSpec& spec,
                                               const Normalization& normalization);

struct CodecRow {
  CodecSpec::Kind kind;
  std::string_view name;
  int last_level;           // levels from 1 on, as in "zstd:3"; 0: it has none
  std::string_view levels;  // what they are called
  bool framed;              // also samples of one size
  bool lossy;               // a decoded frame may differ from the sample that was encoded
  std::uint64_t frame_alignment;
  bool (*can_hold)(const SampleSpec& spec) noexcept;
  const char* held;  // the samples that it can hold, for messages
  MakeCoder* make;   // its arguments were checked
};

// In the order in which messages name them.
std::span<const CodecRow> codecs() noexcept;
// Throws invalid_argument if there is none.
const CodecRow& codec_row(CodecSpec::Kind kind);

MakeCoder make_raw_coder, make_packed_coder, make_zstd_coder, make_jpeg_coder;
bool packed_can_hold(const SampleSpec& spec) noexcept;
bool jpeg_can_hold(const SampleSpec& spec) noexcept;

}  // namespace shard
