#include "format/codec/codec_check.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <string>

#include "format/codec/codecs.hpp"
#include "shard/error.hpp"

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
  codec_spec_from_string(to_string(codec));  // throws if the level is not valid
  const CodecRow& row = codec_row(codec.kind);
  if (row.can_hold(spec)) return;
  std::string others;
  for (const CodecRow& other : codecs())
    if (other.can_hold(spec))
      others = fmt::format("{}{}{}", other.name, others.empty() ? "" : " or ", others);
  refuse(fmt::format("codec {} holds {}, not {} {} with {} channels: use {}", row.name, row.held,
                     to_string(spec.dtype), to_string(spec.layout), spec.channels, others));
}

}  // namespace shard
