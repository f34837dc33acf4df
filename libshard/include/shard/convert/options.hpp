// What a conversion is asked to do, and the text of it that shapes the bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>

#include "shard/convert/scan.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"
#include "shard/image/preprocess.hpp"

namespace shard::convert {

enum class OnError : std::uint8_t { skip, fail };

struct Options {
  // A folder; "@FILE" for a list of paths, one a line; "-" for such a list on standard input.
  std::string images;
  std::filesystem::path out;
  // Lists: keys and classes are relative to it. Empty: the deepest common folder, where that is obvious.
  std::filesystem::path root;
  std::filesystem::path labels;          // CSV: path,label or path,v1,...,vk (empty: classes are folders)
  Unlisted unlisted = Unlisted::reject;  // inputs that the table does not name
  bool strict = false;  // what is passed over (hidden names, files that are no images) becomes a reject

  image::PreprocessOptions preprocess;
  bool fast_decode = false;
  std::uint64_t max_pixels = image::DecodeOptions{}.max_pixels;
  Codec codec;
  std::uint64_t shard_size_bytes = std::uint64_t{1} << 30U;  // of samples before the codec
  std::uint64_t samples_per_shard = 0;  // 0: as many as shard_size_bytes holds, at least 1

  unsigned jobs = 0;  // worker threads; 0: one a core
  OnError on_error = OnError::skip;
  image::OnWarning on_warning = image::OnWarning::harmless;  // which warnings of a decoder let an image pass
  bool overwrite = false;  // makes everything again; what is in OUT stays until the new data set is complete
  bool refresh = false;    // likewise, but only shards whose inputs have changed are converted
  std::uint32_t rank = 0;  // this process converts the shards i with i mod world == rank
  std::uint32_t world = 1;

  // Throws invalid_argument naming the option and its bounds.
  void check() const;
  std::uint64_t per_shard() const;
  unsigned threads() const;
};

// Filter, sizes, decoder and versions, as recorded in every shard and in dataset.json. What decides which
// images are stored, and differs from the default, is in it too: a run with another choice must not go on
// with these shards.
Pipeline pipeline_of(const Options& options);
// 16 hexadecimal digits over everything that shapes the bytes of the shards: the pipeline, sample,
// normalisation, codec, kind of labels and samples per shard.
std::string fingerprint_of(const Options& options, const ColumnSpec& labels);

// That of the same conversion with another codec; where the conversion's options are not known in full, a
// digest of the fingerprint and the codec.
std::string fingerprint_with_codec(const DatasetInfo& info, const Codec& codec);

// How each image is decoded; `cancel` is the caller's.
image::DecodeOptions decode_options(const Options& options, const std::atomic<bool>* cancel);

// What rejects.csv says of an image that `error` is about: in the words of the options that can change it.
std::string reject_reason(const Error& error);

// The bound for image::DecodeOptions::fast_min_short_side: the scaled image still covers the size it is
// resized to.
std::uint32_t fast_decode_side(const image::PreprocessOptions& options);

// The way back: how the samples of a data set were made, to make them again. Errors: unsupported when the
// recorded pipeline is not one of ours.
image::PreprocessOptions preprocess_options_from(const DatasetInfo& info);
// decode options of the recorded pipeline (fast decode, warnings), with the default bound on pixels
image::DecodeOptions decode_options_from(const DatasetInfo& info);

}  // namespace shard::convert
