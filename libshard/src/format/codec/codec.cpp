#include "shard/codec.hpp"

#include <fmt/format.h>

#include "format/codec/codec_check.hpp"
#include "format/codec/codecs.hpp"
#include "shard/error.hpp"

namespace shard {
namespace {

void check_sample_size(std::size_t size, std::uint64_t sample_bytes) {
  if (size != sample_bytes)
    throw Error(ErrorCode::invalid_argument, fmt::format("{} bytes: a sample has {}", size, sample_bytes));
}

}  // namespace

Codec::Codec(const CodecSpec& codec_spec, const SampleSpec& spec, const Normalization& normalization) {
  spec.check();
  check_normalization(normalization, spec);
  check_codec(codec_spec, spec);
  const CodecRow& row = codec_row(codec_spec.kind);
  sample_bytes_ = spec.size_bytes();
  frame_alignment_ = row.frame_alignment;
  coder_ = row.make(codec_spec, spec, normalization);
}

std::vector<std::byte> Codec::encode(std::span<const std::byte> sample) const {
  check_sample_size(sample.size(), sample_bytes_);
  return coder_->encode(sample);
}

void Codec::decode(std::span<const std::byte> frame, std::span<std::byte> sample) const {
  check_sample_size(sample.size(), sample_bytes_);
  coder_->decode(frame, sample);
}

std::uint64_t Codec::least_frame_bytes() const noexcept { return coder_->least_frame_bytes(); }

}  // namespace shard
