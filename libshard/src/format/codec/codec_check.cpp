#include "format/codec/codec_check.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <string>

#include "format/codec/codecs.hpp"
#include "shard/error.hpp"

namespace shard {

namespace {

[[noreturn]] void refuse_codec(const std::string& message) {
  throw Error(ErrorCode::invalid_argument, message);
}

}  // namespace

void check_normalization(const Normalization& normalization, const SampleSpec& spec) {
  const std::size_t count = normalization.mean.size();
  if (count != normalization.std.size())
    refuse_codec(fmt::format("mean has {} numbers and std {}: one for each channel in both", count,
                             normalization.std.size()));
  if (count != 3 && (count < 4 || count != spec.channels))
    refuse_codec(fmt::format(
        "mean and std have {} numbers: they must have 3, or, for samples of more than 3 channels, as "
        "many as there are channels, here {}",
        count, spec.channels));
  if (spec.is_tensor() && !is_identity(normalization))
    refuse_codec("samples of layout tensor have a mean and std: they must be 0 and 1");
  for (std::size_t i = 0; i < count; ++i) {
    const float mean = normalization.mean[i];
    const float std = normalization.std[i];
    if (!std::isfinite(mean))
      refuse_codec(fmt::format("mean of channel {} is {}: it must be finite", i, mean));
    if (!std::isfinite(std) || std <= 0.0F)
      refuse_codec(fmt::format("std of channel {} is {}: it must be finite and above 0", i, std));
  }
}

void check_codec(const CodecSpec& codec, const SampleSpec& spec) {
  codec_spec_from_string(to_string(codec));  // throws if the level is not valid
  const CodecRow& row = codec_row(codec.kind);
  if (row.can_hold(spec)) return;
  std::string others;
  for (const CodecRow& other : codecs())
    if (other.can_hold(spec))
      others = fmt::format("{}{}{}", other.name, others.empty() ? "" : " or ", others);
  refuse_codec(fmt::format("codec {} holds {}, not {} {} with {} channel{}: use {}", row.name, row.held,
                           to_string(spec.dtype), to_string(spec.layout), spec.channels,
                           spec.channels == 1 ? "" : "s", others));
}

}  // namespace shard
