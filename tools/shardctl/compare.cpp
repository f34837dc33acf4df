// compare: decodes the sources again as the data set records, and compares the stored samples with the
// result.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <system_error>
#include <tuple>
#include <utility>

#include <memory>
#include "base/system/parallel.hpp"
#include "base/text/quote.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/text.hpp"
#include "shard/convert/remake.hpp"
#include "shard/convert/text_options.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"
#include "shardctl/commands.hpp"
#include "shardctl/dataset/damage.hpp"
#include "shardctl/dataset/json_text.hpp"
#include "shardctl/dataset/source.hpp"
#include "shardctl/draw/pixels.hpp"
#include "shardctl/subcommand.hpp"

namespace shard::ctl {
namespace {

// Differences are in steps of the 8-bit pixel, after the normalisation is undone.
struct Tally {
  std::uint64_t compared = 0;
  std::uint64_t identical = 0;  // the stored bytes are the same
  std::uint64_t sum = 0;        // of absolute differences
  std::uint64_t values = 0;
  int max = 0;
  std::uint64_t worst = 0;  // index of the sample with the largest difference, then sum; the lowest of equals
  std::uint64_t worst_sum = 0;
  std::uint64_t missing = 0;  // sources that cannot be read or decoded
  std::uint64_t first_missing = UINT64_MAX;
  std::string first_reason;
  std::map<std::string, std::uint64_t> fields;  // of each further field: samples that differ

  bool different() const { return compared != identical; }
  bool worse_than(const Tally& other) const {
    if (different() != other.different()) return different();
    return std::make_tuple(max, worst_sum, other.worst) > std::make_tuple(other.max, other.worst_sum, worst);
  }
  void merge(const Tally& other) {
    if (other.worse_than(*this)) {
      max = other.max;
      worst = other.worst;
      worst_sum = other.worst_sum;
    }
    sum += other.sum;
    compared += other.compared;
    identical += other.identical;
    values += other.values;
    missing += other.missing;
    for (const auto& [name, count] : other.fields) fields[name] += count;
    if (other.first_missing < first_missing) {
      first_missing = other.first_missing;
      first_reason = other.first_reason;
    }
  }
};

std::string key_of(const Source& source, std::uint64_t index) {
  const Source::Sample sample = source.locate(index);
  return std::string(sample.reader.key(sample.index));
}

// What one thread needs.
class Comparer {
 public:
  Comparer(const Source& source, const Denormalizer& denormalizer, const convert::Remake& remake,
           Damage& damage)
      : source_(source), damage_(damage), denormalizer_(denormalizer), remake_(remake), worker_(remake) {}

  void compare(std::uint64_t index) {
    std::string key;
    const bool whole = damage_.survives(index, [&] {
      spec_ = source_.read(index, stored_);
      key = key_of(source_, index);
    });
    if (!whole) return;
    // What would be a reject of the conversion cannot be compared; any other error ends the command.
    if (std::optional<std::string> reason = worker_.make(index, key, made_))
      return miss(index, std::move(*reason));
    if (stored_.size() != made_.size() || (source_.info().spec.is_free() && spec_ != worker_.made()))
      return miss(index, fmt::format("is {} x {} now, not {} x {}", worker_.made().height,
                                     worker_.made().width, spec_.height, spec_.width));
    Tally one;
    one.compared = 1;
    one.values = spec_.elements();
    one.worst = index;
    if (spec_ == worker_.made() && stored_ == made_) {
      one.identical = 1;
    } else {
      measure(one);
    }
    for (std::size_t f = 0; f < remake_.fields().size(); ++f)
      compare_field(remake_.fields()[f], index, worker_.fields()[f].bytes, one);
    tally.merge(one);
  }

  Tally tally;

 private:
  void compare_field(const std::string& name, std::uint64_t index, std::span<const std::byte> made,
                     Tally& one) {
    const std::size_t field = *find_field(source_.info().fields, name);
    const bool whole = damage_.survives(index, [&] { source_.read(index, field_, field); });
    one.fields[name] = whole && !std::ranges::equal(field_, made) ? 1 : 0;
  }
  void measure(Tally& one) {
    stored_bytes_.resize(static_cast<std::size_t>(spec_.elements()));
    made_bytes_.resize(stored_bytes_.size());
    denormalizer_.bytes(stored_, stored_bytes_);
    denormalizer_.bytes(made_, made_bytes_);
    for (std::size_t i = 0; i < stored_bytes_.size(); ++i) {
      const int difference = std::abs(int{stored_bytes_[i]} - int{made_bytes_[i]});
      one.max = std::max(one.max, difference);
      one.sum += static_cast<std::uint64_t>(difference);
    }
    one.worst_sum = one.sum;
  }
  void miss(std::uint64_t index, std::string reason) {
    ++tally.missing;
    if (index >= tally.first_missing) return;
    tally.first_missing = index;
    tally.first_reason = std::move(reason);
  }

  const Source& source_;
  Damage& damage_;
  const Denormalizer& denormalizer_;
  const convert::Remake& remake_;
  convert::Remake::Worker worker_;
  SampleSpec spec_;  // of the sample in stored_
  std::vector<std::byte> field_;
  std::vector<std::byte> stored_;
  std::vector<std::byte> made_;
  std::vector<std::uint8_t> stored_bytes_;
  std::vector<std::uint8_t> made_bytes_;
};

void print(const CompareOptions& options, const Source& source, const Tally& tally, std::uint64_t damaged,
           bool identical) {
  const bool differs = tally.different();
  const double mean =
      tally.values == 0 ? 0 : static_cast<double>(tally.sum) / static_cast<double>(tally.values);
  if (options.json) {
    Json json = {{"identical", identical},
                 {"samples_compared", tally.compared},
                 {"samples_identical", tally.identical},
                 {"samples_damaged", damaged},
                 {"sources_missing", tally.missing},
                 {"max_difference", tally.max},
                 {"mean_difference", mean},
                 {"fields_different", tally.fields}};
    json["worst"] =
        differs ? Json({{"index", tally.worst}, {"key", key_of(source, tally.worst)}}) : Json(nullptr);
    cli::write_out(json_text(json, 2) + "\n");
    return;
  }
  cli::out("{} compared, {} of them identical to the last bit\n", cli::counted(tally.compared, "sample"),
           cli::human_count(tally.identical));
  cli::out("difference in steps of an 8-bit pixel: at most {}, {:.6f} on average\n", tally.max, mean);
  for (const auto& [name, count] : tally.fields)
    cli::out("{}: {} of them differ\n", name, count == 0 ? std::string("none") : cli::human_count(count));
  if (differs) cli::out("worst: sample {}: {}\n", tally.worst, key_of(source, tally.worst));
  if (tally.missing > 0) {
    cli::out("{} cannot be read or decoded, first {}: {}\n", cli::counted(tally.missing, "source"),
             key_of(source, tally.first_missing), tally.first_reason);
  }
  const auto decoder = source.info().provenance.find("decoder");
  if (!identical && decoder != source.info().provenance.end() &&
      decoder->second != image::decoder_versions()) {
    cli::out("note: made with {}, compared with {}\n", escape_key(decoder->second),
             image::decoder_versions());
  }
}

convert::Remake remake_of(const CompareOptions& options, const Source& source) {
  convert::TextOptions text{{"mask", options.mask}, {"array_layout", options.array_layout}};
  for (const std::string& pair : options.pairs) text.add("pairs", pair);
  convert::Options parsed;
  convert::apply(text, parsed);
  std::vector<std::string> keys;
  for (std::uint64_t index = 0; !parsed.pairs.empty() && index < source.size(); ++index)
    keys.push_back(key_of(source, index));
  return {source.info(),
          keys,
          {.images = options.images,
           .layout = parsed.array_layout,
           .pairs = parsed.pairs,
           .max_pixels = options.max_pixels}};
}

}  // namespace

int compare(const CompareOptions& options) {
  std::error_code no_data_set;
  const std::string folder = options.images.substr(0, options.images.find('#'));
  if (std::filesystem::exists(std::filesystem::path(folder) / "dataset.json", no_data_set))
    return compare_sets(options);
  const Source source = Source::open(options.path);
  const convert::Remake remake = remake_of(options, source);
  const Denormalizer denormalizer(source.info().spec, source.info().normalization);
  const std::uint64_t count = options.samples == 0 ? source.size() : std::min(options.samples, source.size());
  const unsigned threads = thread_count(options.jobs);
  std::vector<Comparer> comparers;
  comparers.reserve(threads);
  Damage damage;
  for (unsigned i = 0; i < threads; ++i) comparers.emplace_back(source, denormalizer, remake, damage);
  cli::Progress progress(options.quiet ? cli::ProgressMode::quiet : cli::ProgressMode::automatic);
  parallel_for(threads, count, [&](unsigned thread, std::uint64_t i) {
    // Evenly spread, in order; in two steps, since i x size may not fit 64 bits.
    const std::uint64_t index = i * (source.size() / count) + std::min(i, source.size() % count);
    comparers[thread].compare(index);
    if (progress.due()) progress.update(fmt::format("{} of {} samples compared", i + 1, count));
  });
  progress.finish();
  Tally tally;
  for (const Comparer& comparer : comparers) tally.merge(comparer.tally);
  if (tally.compared == 0 && damage.found()) {
    damage.report("nothing is left to compare");
    return kExitDifferent;
  }
  if (tally.compared == 0) {
    throw Error(
        ErrorCode::not_found,
        fmt::format(
            "none of the {} sources can be read below {} (first: {}: {}); is it the folder that the data set "
            "was made from?",
            tally.missing, quoted(options.images), quoted_key(key_of(source, tally.first_missing)),
            tally.first_reason));
  }
  const bool same_fields =
      std::all_of(tally.fields.begin(), tally.fields.end(), [](const auto& of) { return of.second == 0; });
  const bool identical =
      tally.identical == tally.compared && same_fields && tally.missing == 0 && !damage.found();
  print(options, source, tally, damage.count(), identical);
  if (damage.found()) damage.report("they were not compared");
  return identical ? kExitOk : kExitDifferent;
}

void add_compare(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<CompareOptions>();
  CLI::App* const command = app.add_subcommand("compare", R"(
      Decode the images again and report how the stored samples differ)");
  add_path(command, options->path);
  command
      ->add_option("IMAGES", options->images,
                   "The folder, archives or arrays of images from which it was made; or another data set")
      ->required();
  command
      ->add_option("--samples", options->samples, R"(
      Compare only N samples, evenly spread; 0 means all)")
      ->capture_default_str();
  command->add_option("--mask", options->mask, "Also compare the field mask with the masks in this folder")
      ->type_name("DIR");
  command
      ->add_option("--pair", options->pairs, R"(
      Also compare the field NAME with the files in a folder; may be given several times)")
      ->type_name("NAME=DIR")
      ->allow_extra_args(false);
  command
      ->add_option("--array-layout", options->array_layout, R"(
      For arrays, as it was given to shardify: nhwc, nchw, hwc, chw or hw)")
      ->check(CLI::IsMember({"nhwc", "nchw", "hwc", "chw", "hw"}))
      ->type_name("LAYOUT");
  add_max_pixels(command, options->max_pixels);
  add_jobs(command, options->jobs);
  add_quiet(command, options->quiet);
  add_json(command, options->json);
  runs(command, chosen, [options] { return compare(*options); });
}

}  // namespace shard::ctl
