// Which options shards and dataset.json record, and how to get options back from a record.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "shard/convert/options.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"
#include "shard/image/preprocess.hpp"

namespace shard::convert {

// Filter, sizes, decoder and versions, as recorded in every shard and in dataset.json. An option that decides
// which images are stored is recorded too if it is not the default: a run with another choice must not
// continue with these shards.
Provenance provenance_of(const Options& options);
// True: a data set that an earlier version made with `pages` and without `channels`. Each of its pages has
// the pixels of the first page of its file.
bool has_wrong_pages(const Provenance& provenance);
// Throws invalid_argument for one.
void refuse_wrong_pages(const Provenance& provenance, const std::filesystem::path& of);
// What is wrong with one, as the end of a sentence about it.
inline constexpr std::string_view kWrongPages =
    "it was made with `pages` by a version that stored the first page of a file for each of its pages, so "
    "all samples but FILE#0 are "
    "copies of these";

// What every shard of the conversion records. Its fingerprint is a digest of everything that shapes the bytes
// of the shards: provenance, sample, normalisation, codec, kinds of columns, further image fields and samples
// per shard. `more` is recorded besides provenance_of(options). `fields`: the further image fields.
DatasetSpec spec_of(const Options& options, std::vector<ColumnSpec> columns, const Provenance& more = {},
                    std::vector<FieldSpec> fields = {});
// The digest over everything that shapes the bytes.
std::string fingerprint_of(const DatasetSpec& of, std::uint64_t per_shard);

// The fingerprint of the same conversion with another codec. If not all options of the conversion are known,
// a digest of its fingerprint and the codec.
std::string fingerprint_with_codec(const DatasetInfo& info, const CodecSpec& codec);

// How the samples of a data set were made, from its record, to make them again. Errors: unsupported if
// shardify did not write the recorded provenance.
image::PreprocessOptions preprocess_options_from(const DatasetInfo& info);
// The recorded decode options (fast decode, warnings), with the default bound on pixels.
image::DecodeOptions decode_options_from(const DatasetInfo& info);

}  // namespace shard::convert
