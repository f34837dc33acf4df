#include "commands/convert/convert_bench.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "base/files/file.hpp"
#include "base/system/parallel.hpp"
#include "base/text/quote.hpp"
#include "limits/pure_decode.hpp"
#include "shard/convert/text_options.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"
#include "shard/image/preprocess.hpp"
#include "shard/keys.hpp"

namespace shard::bench {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kCheckedSamples = 16;

Elapsed time_decode(const PhotoSet& photos, unsigned jobs, const std::atomic<bool>& cancel) {
  std::vector<PureDecoder> decoders(jobs);
  std::atomic<std::uint64_t> pixels{0};
  const RunClock clock;
  parallel_for(jobs, photos.size(), [&](unsigned thread, std::uint64_t i) {
    stop_when(cancel, kStoppedAndRemoved);
    pixels += decoders[thread].decode(photos.file(i));
  });
  const Elapsed elapsed = clock.elapsed();
  if (pixels != photos.pixels())
    throw Error(ErrorCode::resource, "libjpeg did not decode what it decoded before: out of memory?");
  return elapsed;
}

// One conversion into `out`.
ConvertRun time_conversion(const PhotoSet& photos, convert::Options options, const fs::path& out,
                           const std::atomic<bool>& cancel) {
  options.images = photos.list();
  options.root = photos.root();
  options.out = out;
  convert::Hooks hooks;
  hooks.cancel = &cancel;
  ConvertRun run;
  const RunClock clock;
  run.summary = convert::run(options, hooks);
  run.elapsed = clock.elapsed();
  if (!run.summary.complete || run.summary.samples != photos.size())
    throw Error(ErrorCode::corrupt, fmt::format("the conversion stored {} of {} images, all of which decode",
                                                run.summary.samples, photos.size()));
  return run;
}

// A candidate must make the right thing before it is timed: the first shard's digests hold, and a few samples
// spread over the data set are, byte for byte, those of decoding the whole file and then preprocessing it.
std::uint64_t check(const fs::path& out, const PhotoSet& photos, const convert::Options& options) {
  const Dataset dataset = Dataset::open(out);
  std::vector<std::byte> scratch;
  const ShardReader& first = dataset.shard(0);
  for (std::uint64_t i = 0; i < first.size(); ++i) first.verify_sample(i, scratch);

  image::Decoder decoder;
  image::Preprocessor preprocessor(options.preprocess);
  const Codec codec(options.codec, options.preprocess.sample_spec(), options.preprocess.normalization);
  const bool encoded = codec.lossy() && !options.preprocess.free_size;  // else the files are stored
  std::vector<std::byte> expected;
  std::vector<std::byte> stored;
  const std::uint64_t count = std::min(kCheckedSamples, dataset.size());
  for (std::uint64_t k = 0; k < count; ++k) {
    const std::uint64_t i = k * dataset.size() / count;
    const std::string key = dataset.key(i);
    preprocessor.run(decoder.decode(read_file(photos.root() / unescape_key(key), ~std::uint64_t{0}), {}),
                     expected);
    if (encoded) {
      FrameSpec of(preprocessor.made());
      const std::vector<std::byte> frame = codec.encode(expected, of);
      codec.decode(frame, expected, of);
    }
    stored.resize(expected.size());
    dataset.read(i, stored);  // throws if the sample has another size
    if (stored != expected)
      throw Error(ErrorCode::corrupt,
                  fmt::format("sample {} is not what decoding and preprocessing it gives", quoted_key(key)));
  }
  return count;
}

}  // namespace

convert::Options preset_options(const std::string& preset, const std::string& size,
                                const std::string& codec) {
  convert::TextOptions text{{"preset", preset}};
  text.add("size", size);
  text.add("codec", codec);
  convert::Options options;
  convert::apply(text, options);
  return options;
}

ConvertBenchResult bench_convert(const ConvertBenchOptions& options, const std::atomic<bool>& cancel,
                                 const std::function<void(const std::string&)>& note,
                                 const std::function<void(const ConvertBenchResult&)>& done) {
  convert::Options conversion = preset_options(options.preset, options.size, options.codec);
  const TempFolder scratch(options.out);
  note("reading the images into memory");
  const PhotoSet photos(options.images, options.count, scratch.path(), cancel, options.most);

  ConvertBenchResult result;
  result.images = photos.size();
  result.distinct = photos.distinct();
  result.excluded = photos.excluded();
  result.bytes = photos.bytes();
  result.pixels = photos.pixels();
  const unsigned jobs = thread_count(options.jobs);
  if (options.scaling && jobs > 1) result.cases.push_back({1, {}, {}});
  result.cases.push_back({jobs, {}, {}});

  note("checking what the conversion makes (also the warm-up)");
  conversion.jobs = jobs;
  {
    const TempFolder folder(scratch.path());
    time_conversion(photos, conversion, folder.path() / "out", cancel);
    result.checked_samples = check(folder.path() / "out", photos, conversion);
  }
  time_decode(photos, jobs, cancel);
  note("measuring");

  for (unsigned k = 0; k < options.repeat; ++k) {
    for (ConvertCase& one : result.cases) {
      one.decodes.push_back(time_decode(photos, one.jobs, cancel));
      conversion.jobs = one.jobs;
      const TempFolder folder(scratch.path());
      one.converts.push_back(time_conversion(photos, conversion, folder.path() / "out", cancel));
    }
    done(result);
  }
  return result;
}

}  // namespace shard::bench
