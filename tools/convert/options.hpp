// What a conversion is asked to do, and the text of it that shapes the bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "shard/dataset.hpp"
#include "shard/image/preprocess.hpp"

namespace shard::convert {

enum class OnError : std::uint8_t { skip, fail };

struct Options {
  // A folder; "@FILE" for a list of paths, one a line; "-" for such a list on standard input.
  std::string images;
  std::filesystem::path out;
  std::filesystem::path
      root;  // lists: keys and classes are relative to it (empty: the deepest common folder)
  std::filesystem::path labels;  // CSV: path,label or path,v1,...,vk (empty: classes are folders)

  image::PreprocessOptions preprocess;
  bool fast_decode = false;
  std::uint64_t max_pixels = image::DecodeOptions{}.max_pixels;
  Codec codec;
  std::uint64_t shard_size_bytes = std::uint64_t{256} << 20U;  // of samples before the codec
  std::uint64_t samples_per_shard = 0;  // 0: as many as shard_size_bytes holds, at least 1

  unsigned jobs = 0;  // worker threads; 0: one a core
  OnError on_error = OnError::skip;
  bool overwrite = false;
  std::uint32_t rank = 0;  // this process converts the shards i with i mod world == rank
  std::uint32_t world = 1;

  // Throws invalid_argument naming the option and its bounds.
  void check() const;
  std::uint64_t per_shard() const;
  unsigned threads() const;
};

// Filter, sizes, decoder and versions, as recorded in every shard and in dataset.json.
Pipeline pipeline_of(const Options& options);
// 16 hexadecimal digits over everything that shapes the bytes of the shards: the pipeline, sample,
// normalisation, codec, kind of labels and samples per shard.
std::string fingerprint_of(const Options& options, const ColumnSpec& labels);

// That of the same conversion with another codec; where the conversion's options are not known in full, a
// digest of the fingerprint and the codec.
std::string fingerprint_with_codec(const DatasetInfo& info, const Codec& codec);

// The bound for image::DecodeOptions::fast_min_short_side: the scaled image still covers the size it is
// resized to.
std::uint32_t fast_decode_side(const image::PreprocessOptions& options);

// The way back: how the samples of a data set were made, to make them again. Errors: unsupported when the
// recorded pipeline is not one of ours.
image::PreprocessOptions preprocess_options_from(const DatasetInfo& info);
// decode options of the recorded pipeline (fast decode), with the default bound on pixels
image::DecodeOptions decode_options_from(const DatasetInfo& info);

}  // namespace shard::convert
