#include "commands/decode/decode_bench.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>

#include <fmt/core.h>

#include "base/system/parallel.hpp"
#include "harness/measure.hpp"
#include "limits/pure_decode.hpp"
#include "shard/convert/decoding.hpp"
#include "shard/convert/text_options.hpp"
#include "shard/dtype.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

constexpr std::uint64_t kCheckedPhotos = 256;
constexpr unsigned kMostCallers = 64;
constexpr std::uint64_t kMostCallFiles = 65536;

std::uint16_t half_at(std::span<const std::byte> bytes, std::uint64_t element) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, bytes.data() + 2 * element, 2);
  return bits;
}

// Files in memory to pixels in a strip by libjpeg-turbo on all threads, for about `seconds`.
double pure_rate(const PhotoSet& photos, unsigned threads, std::uint32_t min_short_side, double seconds) {
  std::atomic<std::uint64_t> next{0};
  std::atomic<std::uint64_t> done{0};
  const Stopwatch watch;
  run_threads(threads, [&](unsigned) {
    PureDecoder decoder;
    for (std::uint64_t i = next++; watch.seconds() < seconds; i = next++) {
      decoder.decode(photos.file(i % photos.size()), min_short_side);
      ++done;
    }
  });
  return static_cast<double>(done) / watch.seconds();
}

// Row by row, so that two tensors of a batch are never whole in memory beside the one that was made.
class Reference {
 public:
  Reference(const PhotoSet& photos, const image::PreprocessOptions& options)
      : photos_(photos), preprocessor_(options), spec_(options.sample_spec()), row_(spec_.size_bytes()) {}
  std::span<const std::byte> make(std::uint64_t photo, const image::DecodeOptions& decode) {
    preprocessor_.run(decoder_.decode(photos_.file(photo), decode), row_);
    return row_;
  }
  LevelDifference compare(const DecodeCandidate& candidate, std::span<const std::byte> made,
                          const image::DecodeOptions& decode, const std::atomic<bool>& cancel) {
    LevelDifference all;
    const std::uint64_t size = spec_.size_bytes();
    const std::uint64_t rows = made.size() / size;
    for (std::uint64_t row = 0; row < rows; ++row) {
      stop_when(cancel);
      const LevelDifference one =
          level_difference(made.subspan(row * size, size), make(candidate.photo(row), decode), spec_,
                           preprocessor_.options().normalization);
      all.mean += one.mean / static_cast<double>(rows);
      if (!(one.most <= all.most)) all.most = one.most;
    }
    return all;
  }

 private:
  const PhotoSet& photos_;
  image::Decoder decoder_;
  image::Preprocessor preprocessor_;
  SampleSpec spec_;
  std::vector<std::byte> row_;
};

// Also the warm-up. Returns its rate.
double verify(const PhotoSet& photos, const DecodeOptions& options, DecodeCandidate& candidate,
              DecodeCase& one, const std::atomic<bool>& cancel) {
  one.values = candidate.check_values(cancel);
  if (one.values) {
    one.checked = one.values->photos;
    if (one.values->differ > 0)
      one.problem = fmt::format("wrong: {} of {} values differ from those of libjpeg-turbo on the host",
                                one.values->differ, one.values->compared);
    return one.values->run.rate();
  }
  one.checked = std::min(candidate.photos(), std::max(kCheckedPhotos, options.batch_size));
  std::vector<std::byte> made(one.checked * options.preprocess().sample_spec().size_bytes(),
                              std::byte{0xFF});  // NaN
  const BatchRun run = candidate.run(one.checked, made);
  Reference reference(photos, options.preprocess());
  one.difference = reference.compare(candidate, made, candidate.decode_options(), cancel);
  one.from_full = candidate.decode_options().fast_min_short_side == 0
                      ? one.difference
                      : reference.compare(candidate, made, {}, cancel);
  if (!one.difference.within(one.allowed))
    one.problem = fmt::format(
        "wrong: {:.2f} levels of 255 from the reference tensors on average and {:.1f} at most; at most "
        "{:.2f} and {:.1f} are allowed",
        one.difference.mean, one.difference.most, one.allowed.mean, one.allowed.most);
  return run.rate();
}

}  // namespace

LevelDifference level_difference(std::span<const std::byte> made, std::span<const std::byte> expected,
                                 const SampleSpec& spec, const Normalization& normalization) {
  if (made.size() == expected.size() && std::memcmp(made.data(), expected.data(), made.size()) == 0)
    return {};
  const double worst = std::nan("");
  if (made.size() != expected.size() || spec.dtype != DType::f16 || spec.layout != Layout::nchw)
    return {worst, worst};
  const std::uint64_t plane = std::uint64_t{spec.height} * spec.width;
  LevelDifference all;
  for (std::uint64_t i = 0; i < spec.elements(); ++i) {
    const double std = static_cast<double>(normalization.std[i / plane % 3]);
    const double difference =
        std::abs(static_cast<double>(f16_to_f32(half_at(made, i)) - f16_to_f32(half_at(expected, i)))) * 255 *
        std;
    all.mean += difference;
    if (!(difference <= all.most)) all.most = difference;
  }
  all.mean /= static_cast<double>(spec.elements());
  return all;
}

image::PreprocessOptions DecodeOptions::preprocess() const {
  image::PreprocessOptions options;
  options.resize_short = resize;
  options.crop = image::Size{crop, crop};
  options.normalization = convert::kImagenet;
  return options;
}

void DecodeOptions::check() const {
  preprocess().check();
  if (batch_size < 1 || batch_size > 4096)
    throw Error(ErrorCode::invalid_argument, fmt::format("--batch-size {}: expected 1 to 4096", batch_size));
  for (const unsigned one : callers)
    if (one < 1 || one > kMostCallers)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("--callers {}: expected 1 to {}", one, kMostCallers));
  for (const std::uint64_t files : call_files)
    if (files < 1 || files > kMostCallFiles)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("--call-files {}: expected 1 to {}", files, kMostCallFiles));
}

std::vector<unsigned> DecodeOptions::callers_or_default() const {
  return callers.empty() ? std::vector<unsigned>{1, 2, 4, 8} : callers;
}

Candidates make_nvjpeg_candidates(const PhotoSet& photos, const std::shared_ptr<Device>& device,
                                  const DecodeOptions& options, std::string& absent) {
  Candidates list;
#ifdef SHARD_WITH_NVJPEG
  try {
    detail::add_nvjpeg_candidates(list, photos, device, options, absent);
  } catch (const Error& error) {
    absent = error.what();
    list.clear();
  }
#else
  (void)photos;
  (void)device;
  (void)options;
  absent = "this shardbench was built without nvJPEG";
#endif
  return list;
}

std::vector<DecodeCase> bench_decode(const PhotoSet& photos, const DecodeOptions& options,
                                     const Candidates& candidates, const std::atomic<bool>& cancel,
                                     const std::function<void(const std::vector<DecodeCase>&)>& done) {
  options.check();
  std::vector<DecodeCase> cases;
  std::vector<double> rates;
  for (const auto& candidate : candidates) {
    stop_when(cancel);
    DecodeCase one;
    one.name = candidate->name();
    one.how = candidate->how();
    one.limited_by = candidate->limited_by();
    one.limit = candidate->limit();
    one.photos = candidate->photos();
    one.allowed = candidate->allowed();
    one.calls = candidate->calls();
    double& rate = rates.emplace_back(0);
    attempt(one.problem, [&] { rate = verify(photos, options, *candidate, one, cancel); });
    candidate->rest();
    cases.push_back(one);
  }
  done(cases);
  const std::uint32_t scaled = convert::fast_decode_side(options.preprocess());
  for (unsigned k = 0; k < options.repeat; ++k) {
    std::map<DecodeLimit, double> limits{{DecodeLimit::none, 0}};
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      stop_when(cancel);
      DecodeCase& one = cases[i];
      if (!one.problem.empty()) continue;
      attempt(one.problem, [&] {
        if (!limits.contains(one.limit))
          limits[one.limit] =
              one.limit == DecodeLimit::link
                  ? candidates[i]->link_rate()
                  : pure_rate(photos, options.jobs(), one.limit == DecodeLimit::scaled ? scaled : 0,
                              std::min(options.seconds, 2.0));
        // The first runs were short: they are compared with the clock again after each one.
        const auto rows = std::max<std::uint64_t>(options.batch_size,
                                                  static_cast<std::uint64_t>(rates[i] * options.seconds));
        const BatchRun run = candidates[i]->run(rows, {});
        rates[i] = run.rate();
        one.samples.push_back({run.rate(), limits[one.limit], run.cores()});
      });
      candidates[i]->rest();
    }
    for (DecodeCase& one : cases)  // of the same repeat
      for (const DecodeCase& other : cases)
        if (!one.samples.empty() && other.name == one.limited_by &&
            other.samples.size() == one.samples.size())
          one.samples.back().limit_images_per_second = other.samples.back().images_per_second;
    done(cases);
  }
  return cases;
}

}  // namespace shard::bench
