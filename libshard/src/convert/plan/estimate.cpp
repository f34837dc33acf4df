#include "shard/convert/estimate.hpp"

#include <sys/statvfs.h>

#include <algorithm>
#include <optional>

#include "base/system/stopwatch.hpp"
#include "convert/plan/choose.hpp"
#include "convert/plan/further_reader.hpp"
#include "convert/plan/plan.hpp"
#include "convert/plan/sample_maker.hpp"
#include "convert/plan/small_images.hpp"
#include "convert/sources/input_file.hpp"
#include "shard/codec.hpp"
#include "shard/convert/decoding.hpp"
#include "shard/error.hpp"
#include "shard/remote.hpp"

namespace shard::convert {

namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kImages = 64;
constexpr double kSeconds = 2.0;
constexpr std::size_t kNamedRejects = 5;

std::optional<std::uint64_t> free_bytes_at(fs::path folder) {
  std::error_code error;
  folder = fs::absolute(folder, error);
  while (!fs::exists(folder, error) && folder != folder.root_path()) folder = folder.parent_path();
  struct statvfs info {};
  if (::statvfs(folder.c_str(), &info) != 0) return std::nullopt;
  return std::uint64_t{info.f_bavail} * info.f_frsize;
}

void count_classes(const Plan& plan, Estimate& estimate) {
  estimate.classes = plan.labels.classes;
  estimate.class_counts.assign(plan.labels.classes.size(), 0);
  if (estimate.classes.empty()) return;
  for (std::size_t i = 0; i < plan.list.inputs.size(); ++i) {
    std::uint64_t label = 0;
    for (std::size_t b = 8; b-- > 0;)
      label = label << 8U | std::to_integer<std::uint64_t>(plan.labels.rows[8 * i + b]);
    ++estimate.class_counts[label];
  }
}

// The bytes of the frames of the further images that were read last. `made`: what is stored of the image.
// Adds the bytes of the samples to `sample_bytes`.
std::uint64_t encoded_further(const Plan& plan, FurtherReader& further, image::Decoder& decoder,
                              const image::DecodeOptions& decode, std::span<const std::byte> image,
                              const Input& input, const SampleSpec& made, std::uint64_t& sample_bytes) {
  if (plan.further.empty()) return 0;
  const image::WideInfo info = image::read_wide_info(image, decode.max_pixels, input.page_number());
  const auto samples = further.samples(decoder, {info.width, info.height}, made, decode);
  std::uint64_t bytes = 0;
  for (std::size_t f = 0; f < samples.size(); ++f) {
    const FieldSpec& spec = plan.further[f].spec;
    const SampleValues& of = samples[f];
    const SampleSpec sized = spec.spec.is_free() ? spec.spec.sized(of.height, of.width) : spec.spec;
    bytes += Codec(spec.codec, spec.spec, spec.normalization).encode(of.bytes, sized).size();
    sample_bytes += of.bytes.size();
  }
  return bytes;
}

// What samples of the plan came to, in all.
struct Measured {
  double seconds = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t compressed = 0;
  std::uint64_t packed = 0;
  std::uint64_t sample_bytes = 0;
  std::uint64_t values = 0;
};

// Converts some of the images, in this thread, and counts them in `result`.
Measured measure_some(const Options& options, const Plan& plan, const Hooks& hooks, Estimate& result) {
  InputReader reader(plan.list);
  FurtherReader further(plan.further);
  SampleMaker maker(options.preprocess, options.codec);
  image::DecodeOptions decode = decode_options(options, hooks.cancel);
  const SampleSpec spec = options.preprocess.sample_spec();
  const Codec codec(options.codec, spec, options.preprocess.normalization);
  std::optional<Codec> packer;
  if (!options.preprocess.wide())
    packer.emplace(CodecSpec{CodecSpec::Kind::packed}, spec, options.preprocess.normalization);

  Measured all;
  const Stopwatch watch;
  const std::uint64_t wanted = std::min<std::uint64_t>(kImages, result.inputs);
  for (std::uint64_t k = 0; k < wanted && all.seconds < kSeconds; ++k) {
    const std::uint64_t index = k * result.inputs / wanted;
    const Input& input = plan.list.inputs[index];
    ++result.sampled;
    try {
      const auto file = reader.read(input);
      further.read(index, 0);
      all.file_bytes += file.size() + further.bytes_read();
      decode.page = input.page_number();
      if (options.pages && input.page == Input::kNoPage) require_counted(file);
      result.sampled_warnings.add(maker.run_file(file, decode));
      const SampleSpec& made = maker.made();
      const SampleValues image = maker.values();
      all.compressed += image.frame ? image.bytes.size() : codec.encode(maker.sample(), made).size();
      all.sample_bytes += maker.sample().size();
      all.values += made.elements();
      all.compressed +=
          encoded_further(plan, further, maker.decoder(), decode, file, input, made, all.sample_bytes);
      if (packer) all.packed += packer->encode(maker.sample(), made).size();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::cancelled) throw;
      ++result.sampled_rejects;
      if (result.sampled_reject_list.size() < kNamedRejects)
        result.sampled_reject_list.push_back({input.key(), reject_reason(error)});
    }
    all.seconds = watch.seconds();
  }
  return all;
}

}  // namespace

Estimate estimate(const Options& given, const Hooks& hooks) {
  given.check();
  Options options = given;
  Plan plan = make_plan(options);
  options.preprocess = plan.preprocess;
  const SmallImages small = look_for_small_images(plan, options);
  if (small.smaller > 0) plan.warnings.push_back(enlargement_text(small, plan.preprocess));
  if (hooks.planned) hooks.planned(listing_of(plan));
  Estimate result;
  result.listed = plan.listed;
  result.sized = small.sampled;
  result.smaller = small.smaller;
  result.inputs = plan.list.inputs.size();
  result.rejects = plan.list.rejects;
  result.shards = plan.shards();
  result.per_shard = plan.per_shard;
  result.sample_bytes = plan.sample_bytes();
  result.out_bytes = result.inputs * result.sample_bytes;
  if (!is_remote(options.out)) result.free_bytes = free_bytes_at(options.out);
  count_classes(plan, result);

  const Measured all = measure_some(options, plan, hooks, result);
  const std::uint64_t good = result.sampled - result.sampled_rejects;
  result.seconds_per_image = all.seconds / static_cast<double>(result.sampled);
  result.seconds = result.seconds_per_image * static_cast<double>(result.inputs) / options.threads();
  if (good > 0) result.mean_input_bytes = all.file_bytes / good;
  if (good > 0) result.mean_packed_bytes = all.packed / good;
  if (good > 0) result.mean_values = static_cast<double>(all.values) / static_cast<double>(good);
  if (good > 0 && options.preprocess.sample_spec().is_free()) {
    result.sample_bytes = all.sample_bytes / good;
    result.out_bytes = result.inputs * result.sample_bytes;
  }
  if (good > 0)
    result.compressed_ratio =
        static_cast<double>(all.compressed) / static_cast<double>(good * result.sample_bytes);
  return result;
}

}  // namespace shard::convert
