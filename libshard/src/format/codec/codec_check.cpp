#include "format/codec/codec_check.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <string>

#include "shard/error.hpp"
#include "shard/packed_format.hpp"

namespace shard {

namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::invalid_argument, message); }

}  // namespace

void check_normalization(const Normalization& normalization, const SampleSpec& spec) {
  const std::size_t count = normalization.mean.size();
  if (count != normalization.std.size())
    refuse(fmt::format("mean has {} numbers and std {}: one for each channel in both", count,
                       normalization.std.size()));
  if (count != 3 && (count < 4 || count != spec.channels))
    refuse(fmt::format(
        "mean and std have {} numbers: they must have 3, or, for samples of more than 3 channels, as "
        "many as there are channels, here {}",
        count, spec.channels));
  if (spec.is_tensor() && !is_identity(normalization))
    refuse("samples of layout tensor have a mean and std: they must be 0 and 1");
  for (std::size_t i = 0; i < count; ++i) {
    const float mean = normalization.mean[i];
    const float std = normalization.std[i];
    if (!std::isfinite(mean)) refuse(fmt::format("mean of channel {} is {}: it must be finite", i, mean));
    if (!std::isfinite(std) || std <= 0.0F)
      refuse(fmt::format("std of channel {} is {}: it must be finite and above 0", i, std));
  }
}

void check_codec(const CodecSpec& codec, const SampleSpec& spec) {
  if (codec.kind != CodecSpec::Kind::packed) return;
  if (spec.dtype == DType::u16 || spec.channels > packed::kMaxChannels || spec.is_tensor())
    refuse(fmt::format(
        "codec packed holds images of 8 bits and up to {} channels, not {} {} with {} channels: use "
        "zstd or none",
        packed::kMaxChannels, to_string(spec.dtype), to_string(spec.layout), spec.channels));
}

}  // namespace shard
