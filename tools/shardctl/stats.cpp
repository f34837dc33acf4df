// stats: mean and standard deviation of each channel, ready for --mean and --std, and what codec packed would
// take.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include <memory>
#include "base/system/parallel.hpp"
#include "base/text/quote.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/text.hpp"
#include "shard/codec.hpp"
#include "shard/convert/inputs.hpp"
#include "shard/convert/options.hpp"
#include "shard/error.hpp"
#include "shard/image/preprocess.hpp"
#include "shardctl/commands.hpp"
#include "shardctl/dataset/damage.hpp"
#include "shardctl/dataset/json_text.hpp"
#include "shardctl/dataset/source.hpp"
#include "shardctl/draw/pixels.hpp"
#include "shardctl/subcommand.hpp"

namespace shard::ctl {
namespace {

// Of bytes exact: their sums and those of their squares fit 64 bits for up to 2.8e14 pixels.
struct Sums {
  std::vector<std::uint64_t> sum;  // by channel
  std::vector<std::uint64_t> squares;
  std::vector<long double> wide;  // of values that are not bytes
  std::vector<long double> wide_squares;
  std::uint64_t pixels = 0;
  std::uint64_t samples = 0;
  std::uint64_t skipped = 0;
  std::uint64_t packed_samples = 0;  // those that were packed, to know their size
  std::uint64_t packed_bytes = 0;
  std::uint64_t packed_values = 0;  // of them

  void add_packed(std::size_t frame_bytes, std::size_t values) {
    ++packed_samples;
    packed_values += values;
    packed_bytes += frame_bytes;
  }
  void need(std::size_t channels) {
    sum.resize(std::max(sum.size(), channels));
    squares.resize(sum.size());
    wide.resize(sum.size());
    wide_squares.resize(sum.size());
  }
  void add(std::span<const std::uint8_t> packed, std::uint32_t channels) {
    need(channels);
    for (std::size_t i = 0; i < packed.size(); i += channels) {
      for (std::uint32_t c = 0; c < channels; ++c) {
        const std::uint64_t value = packed[i + c];
        sum[c] += value;
        squares[c] += value * value;
      }
    }
    pixels += packed.size() / channels;
    ++samples;
  }
  void add(std::span<const double> packed, std::uint32_t channels) {
    need(channels);
    for (std::size_t i = 0; i < packed.size(); ++i) {
      const long double value = packed[i];
      wide[i % channels] += value;
      wide_squares[i % channels] += value * value;
    }
    pixels += packed.size() / channels;
    ++samples;
  }
  void add(const Sums& other) {
    need(other.sum.size());
    for (std::size_t c = 0; c < other.sum.size(); ++c) {
      sum[c] += other.sum[c];
      squares[c] += other.squares[c];
      wide[c] += other.wide[c];
      wide_squares[c] += other.wide_squares[c];
    }
    pixels += other.pixels;
    samples += other.samples;
    skipped += other.skipped;
    packed_samples += other.packed_samples;
    packed_values += other.packed_values;
    packed_bytes += other.packed_bytes;
  }
  double mean(std::uint32_t c) const { return static_cast<double>(first_moment(c)); }
  double std(std::uint32_t c) const {
    const long double m = first_moment(c);
    const long double of_bytes = static_cast<long double>(squares[c]) / (255.0L * 255.0L);
    const long double second = (of_bytes + wide_squares[c]) / static_cast<long double>(pixels);
    return static_cast<double>(std::sqrt(std::max(0.0L, second - m * m)));
  }

 private:
  // Either bytes or values that are none were added.
  long double first_moment(std::uint32_t c) const {
    return (static_cast<long double>(sum[c]) / 255.0L + wide[c]) / static_cast<long double>(pixels);
  }
};

constexpr std::uint64_t kPacked = 256;  // samples that are packed, evenly spread
constexpr CodecSpec kPackedCodec{CodecSpec::Kind::packed};

Sums total(const std::vector<Sums>& parts) {
  Sums sums;
  for (const Sums& part : parts) sums.add(part);
  return sums;
}

// Of the samples that are whole.
Sums of_samples(const Source& source, const StatsOptions& options, cli::Progress& progress, Damage& damage) {
  const SampleSpec& spec = source.info().spec;
  const Denormalizer denormalizer(spec, source.info().normalization);
  const unsigned threads = thread_count(options.jobs);
  std::optional<Codec> packer;
  const SampleSpec as_bytes{DType::u8, Layout::nhwc, spec.channels, spec.height, spec.width};
  if (kPackedCodec.can_hold(spec)) packer.emplace(kPackedCodec, as_bytes);
  const std::uint64_t step = (source.size() + kPacked - 1) / kPacked;
  std::vector<Sums> sums(threads);
  std::vector<std::vector<std::byte>> samples(threads);
  std::vector<std::vector<std::uint8_t>> bytes(threads);
  std::vector<std::vector<double>> values(threads);
  std::atomic<bool> no_packed = false;
  parallel_for(threads, source.size(), [&](unsigned thread, std::uint64_t index) {
    SampleSpec of;
    if (!damage.survives(index, [&] { of = source.read(index, samples[thread]); })) return;
    bytes[thread].resize(static_cast<std::size_t>(of.elements()));
    denormalizer.bytes(samples[thread], bytes[thread]);
    if (denormalizer.are_bytes(samples[thread], bytes[thread])) {
      sums[thread].add(bytes[thread], spec.channels);
    } else {  // 16 bits, or floats that are not those of bytes, which codec packed cannot hold
      values[thread].resize(bytes[thread].size());
      denormalizer.values(samples[thread], values[thread]);
      sums[thread].add(values[thread], spec.channels);
      no_packed = true;
    }
    if (packer && index % step == 0) {
      const SampleSpec sized = spec.is_free() ? as_bytes.sized(of.height, of.width) : as_bytes;
      const auto packed = std::as_bytes(std::span(bytes[thread]));
      sums[thread].add_packed(packer->encode(packed, sized).size(), packed.size());
    }
    if (progress.due()) progress.update(fmt::format("{} of {} samples", index + 1, source.size()));
  });
  Sums all = total(sums);
  if (no_packed) all.packed_samples = 0;
  return all;
}

// What one thread needs to decode images as the train preset does.
struct ImageWorker {
  ImageWorker(const convert::Inputs& inputs, const image::PreprocessOptions& options)
      : reader(inputs), preprocessor(options), bytes(options.sample_spec().size_bytes()) {}
  convert::Inputs::Reader reader;
  image::Decoder decoder;
  image::Preprocessor preprocessor;
  std::vector<std::byte> bytes;
  Sums sums;
};

Sums of_images(const StatsOptions& options, cli::Progress& progress) {
  const convert::Inputs inputs(options.path);
  const image::PreprocessOptions preprocess = convert::preprocess_of(convert::Preset::train);
  image::DecodeOptions decode;
  decode.max_pixels = options.max_pixels;
  const Codec packer(kPackedCodec, preprocess.sample_spec());
  const std::uint64_t step = (inputs.size() + kPacked - 1) / kPacked;
  const unsigned threads = thread_count(options.jobs);
  std::vector<ImageWorker> workers;
  workers.reserve(threads);
  for (unsigned i = 0; i < threads; ++i) workers.emplace_back(inputs, preprocess);
  parallel_for(threads, inputs.size(), [&](unsigned thread, std::uint64_t index) {
    ImageWorker& worker = workers[thread];
    try {
      worker.preprocessor.run_file(worker.decoder, worker.reader.read(index), decode, worker.bytes);
      const auto* pixels = reinterpret_cast<const std::uint8_t*>(worker.bytes.data());
      worker.sums.add({pixels, worker.bytes.size()}, 3);
      if (index % step == 0) worker.sums.add_packed(packer.encode(worker.bytes).size(), worker.bytes.size());
    } catch (const convert::UnreadableInput&) {
      ++worker.sums.skipped;
    } catch (const Error& error) {
      const bool image_at_fault =
          error.code() == ErrorCode::corrupt || error.code() == ErrorCode::unsupported ||
          error.code() == ErrorCode::resource;  // of the reader: UnreadableInput or fatal
      if (!image_at_fault) throw;
      ++worker.sums.skipped;
    }
    if (progress.due()) progress.update(fmt::format("{} of {} images", index + 1, inputs.size()));
  });
  Sums sums;
  for (const ImageWorker& worker : workers) sums.add(worker.sums);
  return sums;
}

bool is_data_set(const std::string& path) {
  if (path == "-" || path.starts_with("@")) return false;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    const FolderState state = folder_state(path);
    return state == FolderState::complete || state == FolderState::incomplete;
  }
  return true;
}

void print(const StatsOptions& options, const Sums& sums, std::uint64_t damaged, std::uint32_t channels,
           bool stored) {
  double packed = 0;  // bytes per sample
  double bits = 0;    // per value of these samples
  if (sums.packed_samples > 0) {
    const auto samples = static_cast<double>(sums.packed_samples);
    packed = static_cast<double>(sums.packed_bytes) / samples;
    bits = 8.0 * packed / (static_cast<double>(sums.packed_values) / samples);
  }
  std::vector<std::string> means;
  std::vector<std::string> stds;
  for (std::uint32_t c = 0; c < channels; ++c) {
    means.push_back(fmt::format("{:.6f}", sums.mean(c)));
    stds.push_back(fmt::format("{:.6f}", sums.std(c)));
  }
  if (options.json) {
    Json json = {{"kind", stored ? "samples" : "images"},
                 {"samples", sums.samples},
                 {"skipped", sums.skipped},
                 {"damaged", damaged},
                 {"pixels", sums.pixels},
                 {"packed_samples", sums.packed_samples},
                 {"packed_bytes_per_sample", packed},
                 {"packed_bits_per_value", bits}};
    json["mean"] = Json::array();
    json["std"] = Json::array();
    for (std::uint32_t c = 0; c < channels; ++c) {
      json["mean"].push_back(sums.mean(c));
      json["std"].push_back(sums.std(c));
    }
    cli::write_out(json_text(json, 2) + "\n");
    return;
  }
  cli::out(
      "{} {}, {} pixels; of value / 255, normalisation undone:\n", cli::human_count(sums.samples),
      stored ? "stored samples" : "images (short side resized to 256, centre crop 256, as shardify does)",
      cli::human_count(sums.pixels));
  cli::out("--mean {} --std {}\n", fmt::join(means, ","), fmt::join(stds, ","));
  if (sums.packed_samples > 0)
    cli::out("codec packed: {:.0f} bytes per sample, {:.2f} bits per value (measured on {})\n", packed, bits,
             cli::counted(sums.packed_samples, "sample"));
  if (sums.skipped > 0)
    cli::out("{} skipped: not readable or not an image\n", cli::counted(sums.skipped, "file"));
}

}  // namespace

int stats(const StatsOptions& options) {
  cli::Progress progress(options.quiet ? cli::ProgressMode::quiet : cli::ProgressMode::automatic);
  const bool stored = is_data_set(options.path);
  Sums sums;
  Damage damage;
  std::uint32_t channels = 3;
  if (stored) {
    const Source source = Source::open(options.path, options.verify ? Check::digests : Check::none);
    channels = source.info().spec.channels;
    sums = of_samples(source, options, progress, damage);
  } else {
    sums = of_images(options, progress);
  }
  progress.finish();
  if (sums.samples == 0 && damage.found()) {
    damage.report("every sample is damaged");
    return kExitDifferent;
  }
  if (sums.samples == 0) {
    throw Error(ErrorCode::not_found, fmt::format("{}: none of the {} files is an image that can be decoded",
                                                  quoted(options.path), sums.skipped));
  }
  print(options, sums, damage.count(), channels, stored);
  if (!damage.found()) return kExitOk;
  damage.report("the figures are of the other samples");
  return kExitDifferent;
}

void add_stats(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<StatsOptions>();
  CLI::App* const command = app.add_subcommand("stats", R"(
      Print mean and standard deviation of each channel, and the size with codec packed

      The numbers are in the form that --mean and --std of shardify take.)");
  add_path(command, options->path, R"(
      The folder of a data set, a shard, or images: a folder, @FILE or - (a list of paths). Images are resized to 256
      and cropped to 256)");
  add_verify(command, options->verify);
  add_max_pixels(command, options->max_pixels);
  add_jobs(command, options->jobs);
  add_quiet(command, options->quiet);
  add_json(command, options->json);
  runs(command, chosen, [options] { return stats(*options); });
}

}  // namespace shard::ctl
