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

// Encodes and decodes samples, as Codec says, which has checked their size. `of`: the spec of the sample,
// which is the one that the coder was made for, with the sample's own rows and columns if that is free.
// Immutable and thread safe.
class Coder {
 public:
  Coder() = default;
  Coder(const Coder&) = delete;
  Coder& operator=(const Coder&) = delete;
  virtual ~Coder() = default;

  virtual std::vector<std::byte> encode(const SampleSpec& of, std::span<const std::byte> sample) const = 0;
  virtual void decode(const SampleSpec& of, std::span<const std::byte> frame,
                      std::span<std::byte> sample) const = 0;
  virtual std::uint64_t least_frame_bytes(const SampleSpec& of) const noexcept = 0;
};

using MakeCoder = std::shared_ptr<const Coder>(const CodecSpec& codec, const SampleSpec& spec,
                                               const Normalization& normalization);

struct CodecRow {
  CodecSpec::Kind kind;
  std::string_view name;
  int last_level;  // levels from 1 on, as in "zstd:3"; 0: it has none
  bool framed;     // also samples of one size
  std::uint64_t frame_alignment;
  bool (*can_hold)(const SampleSpec& spec) noexcept;
  const char* held;  // the samples that it can hold, for messages
  MakeCoder* make;   // its arguments were checked
};

// In the order in which messages name them.
std::span<const CodecRow> codecs() noexcept;
// Throws invalid_argument if there is none.
const CodecRow& codec_row(CodecSpec::Kind kind);

MakeCoder make_raw_coder, make_packed_coder, make_zstd_coder;
bool packed_can_hold(const SampleSpec& spec) noexcept;

}  // namespace shard
