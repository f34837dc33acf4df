// What a codec and the normalisation beside it must be for samples of a spec. Errors: invalid_argument.
#pragma once

#include "shard/dataset_spec.hpp"

namespace shard {

void check_normalization(const Normalization& normalization, const SampleSpec& spec);
// Whether the level is valid, and the codec can hold the samples.
void check_codec(const CodecSpec& codec, const SampleSpec& spec);

}  // namespace shard
