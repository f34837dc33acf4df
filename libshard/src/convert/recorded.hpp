// Which options shards and dataset.json record, and how to get options back from a record.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "shard/convert/options.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"
#include "shard/image/preprocess.hpp"

namespace shard::convert {

// Filter, sizes, decoder and versions, as recorded in every shard and in dataset.json. An option that decides
// which images are stored is recorded too if it is not the default: a run with another choice must not
// continue with these shards.
Provenance provenance_of(const Options& options);
// What every shard of the conversion records. Its fingerprint is a digest of everything that shapes the bytes
// of the shards: provenance, sample, normalisation, codec, kind of labels and samples per shard.
DatasetSpec spec_of(const Options& options, const ColumnSpec& labels);

// The fingerprint of the same conversion with another codec. If not all options of the conversion are known,
// a digest of its fingerprint and the codec.
std::string fingerprint_with_codec(const DatasetInfo& info, const CodecSpec& codec);

// How each image is decoded. `cancel` must outlive the result.
image::DecodeOptions decode_options(const Options& options, const std::atomic<bool>* cancel);

// The reason in rejects.csv for an image whose conversion failed with `error`. Names the option that can
// change it.
std::string reject_reason(const Error& error);

// The value of image::DecodeOptions::fast_min_short_side with which the image that is decoded at a reduced
// size still covers the size to which it is resized.
std::uint32_t fast_decode_side(const image::PreprocessOptions& options);

// How the samples of a data set were made, from its record, to make them again. Errors: unsupported if
// shardify did not write the recorded provenance.
image::PreprocessOptions preprocess_options_from(const DatasetInfo& info);
// The recorded decode options (fast decode, warnings), with the default bound on pixels.
image::DecodeOptions decode_options_from(const DatasetInfo& info);

}  // namespace shard::convert
