// What a conversion is asked to do.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "shard/codec.hpp"
#include "shard/image/preprocess.hpp"

namespace shard::convert {

// What becomes of an image that cannot be stored: a reject, or the end of the conversion.
enum class OnError : std::uint8_t { skip, fail };
// What becomes of inputs that the table of labels does not name: rejects, or counted and left out.
enum class Unlisted : std::uint8_t { reject, skip };

// Messages of errors name members as `member`, for example `max_pixels`; programs replace these names by
// those that their users know.

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
  // What images may take while they are decoded, all threads together. Images wait for each other within it;
  // one that alone needs more is a reject. 0: three quarters of the memory that is available to this process
  // when it starts.
  std::uint64_t decode_memory_bytes = 0;
  OnError on_error = OnError::skip;
  image::OnWarning on_warning = image::OnWarning::harmless;  // which warnings of a decoder let an image pass
  bool overwrite = false;  // makes everything again; what is in OUT stays until the new data set is complete
  bool refresh = false;    // likewise, but only shards whose inputs have changed are converted
  std::uint32_t rank = 0;  // this process converts the shards i with i mod world == rank
  std::uint32_t world = 1;

  // Throws invalid_argument naming the member and its bounds.
  void check() const;
  std::uint64_t per_shard() const;
  unsigned threads() const;
};

}  // namespace shard::convert
