// Decoding on the fly: JPEG files in the page cache to normalised batches on the device. The baseline that
// shards are compared with.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/system/parallel.hpp"
#include "data/photo_set.hpp"
#include "feeds/batch_pipeline.hpp"
#include "shard/image/preprocess.hpp"
#include "shard/loader/device.hpp"

namespace shard::bench {

// The difference of normalised values, in levels of the byte from which they were computed (0 to 255).
struct LevelDifference {
  double mean = 0;
  double most = 0;
  bool within(const LevelDifference& bound) const noexcept {
    return mean <= bound.mean && most <= bound.most;  // NaN is not
  }
};

// Between tensors of float16 [sample, channel, row, column], C order.
LevelDifference level_difference(std::span<const std::byte> made, std::span<const std::byte> expected,
                                 const SampleSpec& spec, const Normalization& normalization);

// The limit: libjpeg-turbo decodes the same files and does nothing else, or the files' bytes go over the link
// to the GPU. For nvJPEG it is the decode-only row of the same kind.
enum class DecodeLimit : std::uint8_t { none, full, scaled, link };

// How a decoder is called: by `callers` threads, each with a decoder of its own.
struct DecoderCalls {
  unsigned callers = 1;
  std::uint64_t files = 256;  // of a call
  bool boxes = false;         // a random resized crop of each image; else all of it
};

// Values that were made, compared with those of libjpeg-turbo on the host, bit by bit.
struct ValueCheck {
  std::uint64_t photos = 0;  // whole images
  std::uint64_t compared = 0;
  std::uint64_t differ = 0;
  std::uint64_t on_host = 0;  // of `photos`: those that the device left to the host
  BatchRun run;               // a first one, to know about how fast it is
};

// One way to make batches. Photo `photo(row)` of the set is row `row` of a run.
class DecodeCandidate {
 public:
  virtual ~DecodeCandidate() = default;
  virtual std::string name() const = 0;
  virtual std::string how() const = 0;
  virtual DecodeLimit limit() const noexcept { return DecodeLimit::none; }
  // The name of another candidate whose rate this one cannot exceed. May be empty.
  virtual std::string limited_by() const { return {}; }
  virtual double link_rate() { return 0; }  // photos/s, if limit() is the link; measured anew
  virtual image::DecodeOptions decode_options() const { return {}; }  // of its reference
  virtual LevelDifference allowed() const noexcept { return {}; }     // 0: the same bits
  virtual std::optional<DecoderCalls> calls() const { return std::nullopt; }
  // Instead of the two above, where tensors must be the host's and are not those of DecodeOptions.
  // Errors: io, cancelled.
  virtual std::optional<ValueCheck> check_values(const std::atomic<bool>&) { return std::nullopt; }
  virtual std::uint64_t photos() const noexcept = 0;  // that take part
  virtual std::uint64_t photo(std::uint64_t row) const = 0;
  // Makes `rows` photos, one after the other, in batches. `out` as in BatchPipeline::run. Errors: io,
  // cancelled.
  virtual BatchRun run(std::uint64_t rows, std::span<std::byte> out) = 0;
  // Frees threads and memory until the next run.
  virtual void rest() {}
};

struct DecodeOptions {
  unsigned threads = 0;  // 0: one per core
  std::uint64_t batch_size = 256;
  std::uint32_t resize = 256;
  std::uint32_t crop = 224;
  std::vector<unsigned> callers;  // of JpegDecoder at a time; none: on a GPU 1, 2, 4 and 8
  std::vector<std::uint64_t> call_files = {256, 2048};
  double seconds = 2;  // of each sample, about
  unsigned repeat = 5;
  std::vector<unsigned> callers_or_default() const;
  unsigned jobs() const { return thread_count(threads); }
  image::PreprocessOptions preprocess() const;  // float16 [channel, row, column], ImageNet's normalisation
  void check() const;                           // throws invalid_argument
};

struct DecodeSample {
  double images_per_second = 0;
  double limit_images_per_second = 0;  // 0: none
  double cores = 0;
};

struct DecodeCase {
  std::string name, how, limited_by;
  DecodeLimit limit = DecodeLimit::none;
  std::uint64_t photos = 0;
  std::uint64_t checked = 0;
  LevelDifference difference, allowed;  // from its own reference
  LevelDifference from_full;            // from decoding in full
  std::optional<DecoderCalls> calls;
  std::optional<ValueCheck> values;  // instead of the differences
  std::string problem;               // wrong, or it failed: then it was not timed
  std::vector<DecodeSample> samples;
};

using Candidates = std::vector<std::unique_ptr<DecodeCandidate>>;

// libjpeg-turbo on all threads: {full, scaled DCT} x {normalised on the host, bytes normalised on the
// device}.
Candidates make_cpu_candidates(const PhotoSet& photos, const std::shared_ptr<Device>& device,
                               const DecodeOptions& options);
// The candidates with nvJPEG. Empty, with the reason in `absent`, if there is no CUDA device or no library,
// or if shardbench was built without it. `device` is a CUDA device.
Candidates make_nvjpeg_candidates(const PhotoSet& photos, const std::shared_ptr<Device>& device,
                                  const DecodeOptions& options, std::string& absent);

// shard::JpegDecoder with files in pinned memory: {whole images, boxes} x files of a call x callers, resized
// to DecodeOptions::crop. Empty, with the reason in `absent`, if the device is the host and no callers are
// asked for, or if it has no kernels.
Candidates make_jpeg_candidates(const PhotoSet& photos, const std::shared_ptr<Device>& device,
                                const DecodeOptions& options, std::string& absent);

// Compares each candidate with its reference, then times candidates and their limits alternately. `done` is
// called after the checks and after each repeat. Errors: cancelled.
std::vector<DecodeCase> bench_decode(const PhotoSet& photos, const DecodeOptions& options,
                                     const Candidates& candidates, const std::atomic<bool>& cancel,
                                     const std::function<void(const std::vector<DecodeCase>&)>& done);

namespace detail {
void add_nvjpeg_candidates(Candidates& list, const PhotoSet& photos, const std::shared_ptr<Device>& device,
                           const DecodeOptions& options, std::string& absent);  // built with nvJPEG only
}

}  // namespace shard::bench
