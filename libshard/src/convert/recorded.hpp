// What is recorded of the options in shards and dataset.json, and the way back to options.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "shard/convert/options.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"
#include "shard/image/preprocess.hpp"

namespace shard::convert {

// Filter, sizes, decoder and versions, as recorded in every shard and in dataset.json. What decides which
// images are stored, and differs from the default, is in it too: a run with another choice must not go on
// with these shards.
Provenance provenance_of(const Options& options);
// What every shard of the conversion records. Its fingerprint is a digest of everything that shapes the bytes
// of the shards: provenance, sample, normalisation, codec, kind of labels and samples per shard.
DatasetSpec spec_of(const Options& options, const ColumnSpec& labels);

// The fingerprint of the same conversion with another codec; if the conversion's options are not known in
// full, a digest of the fingerprint and the codec.
std::string fingerprint_with_codec(const DatasetInfo& info, const CodecSpec& codec);

// How each image is decoded; `cancel` is the caller's.
image::DecodeOptions decode_options(const Options& options, const std::atomic<bool>* cancel);

// What rejects.csv says of an image that `error` is about: in the words of the options that can change it.
std::string reject_reason(const Error& error);

// The bound for image::DecodeOptions::fast_min_short_side: the scaled image still covers the size it is
// resized to.
std::uint32_t fast_decode_side(const image::PreprocessOptions& options);

// The way back: how the samples of a data set were made, to make them again. Errors: unsupported when the
// recorded provenance is not one of ours.
image::PreprocessOptions preprocess_options_from(const DatasetInfo& info);
// Decode options of the recorded provenance (fast decode, warnings), with the default bound on pixels
image::DecodeOptions decode_options_from(const DatasetInfo& info);

}  // namespace shard::convert
