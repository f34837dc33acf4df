#include "shard/codec.hpp"

#include <fmt/format.h>

#include "format/codec/codec_check.hpp"
#include "format/codec/codecs.hpp"
#include "shard/error.hpp"

namespace shard {

Codec::Codec(const CodecSpec& codec_spec, const SampleSpec& spec, const Normalization& normalization) {
  spec.check();
  check_normalization(normalization, spec);
  check_codec(codec_spec, spec);
  const CodecRow& row = codec_row(codec_spec.kind);
  spec_ = spec;
  frame_alignment_ = row.frame_alignment;
  lossy_ = row.lossy;
  coder_ = row.make(codec_spec, spec, normalization);
}

void Codec::check_sample(std::size_t size, const SampleSpec& of) const {
  if (spec_.is_free()) of.check();
  if (of.is_free() || (spec_.is_free() ? spec_.sized(of.height, of.width) : spec_) != of)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a sample of {} rows and {} columns: the codec is for {} rows and {} columns",
                            of.height, of.width, spec_.height, spec_.width));
  if (size != of.size_bytes())
    throw Error(ErrorCode::invalid_argument, fmt::format("{} bytes: a sample has {}", size, of.size_bytes()));
}

std::vector<std::byte> Codec::encode(std::span<const std::byte> sample, FrameSpec& of) const {
  check_sample(sample.size(), of.sample);
  return coder_->encode(of, sample);
}

void Codec::decode(std::span<const std::byte> frame, std::span<std::byte> sample, const FrameSpec& of) const {
  check_sample(sample.size(), of.sample);
  coder_->decode(of, frame, sample);
}

void Codec::decode_part(std::span<const std::byte> frame, std::span<std::byte> sample, const FrameSpec& of,
                        const SampleBox& box) const {
  check_sample(sample.size(), of.sample);
  const SampleSpec& spec = of.sample;
  if (box.width == 0 || box.height == 0 || box.width > spec.width || box.height > spec.height ||
      box.left > spec.width - box.width || box.top > spec.height - box.height)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a box of {} x {} at row {}, column {} of a sample of {} x {} (rows x columns)",
                            box.height, box.width, box.top, box.left, spec.height, spec.width));
  coder_->decode_part(of, frame, sample, box);
}

std::uint64_t Codec::least_frame_bytes(const FrameSpec& of) const noexcept {
  return coder_->least_frame_bytes(of);
}
std::uint64_t Codec::most_frame_bytes(const FrameSpec& of) const noexcept {
  return coder_->most_frame_bytes(of);
}
void Codec::check_file(const FrameSpec& of) const { coder_->check_file(of); }
void Codec::check_frame(std::span<const std::byte> frame, const FrameSpec& of) const {
  coder_->check_frame(of, frame);
}
void Codec::verify(std::span<const std::byte> frame, const FrameSpec& of) const { coder_->verify(of, frame); }

}  // namespace shard
