// compare: decodes the sources again as the data set records, and compares the stored samples with the
// result.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
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
#include "convert/plan/further_reader.hpp"
#include "convert/sources/input_file.hpp"
#include "convert/sources/source_kind.hpp"
#include "shard/convert/decoding.hpp"
#include "shard/convert/recorded.hpp"
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
  // `list`: the archives' members, or only the folder.
  Comparer(const Source& source, const Denormalizer& denormalizer, const CompareOptions& options,
           const convert::InputList& list, const std::vector<convert::FurtherField>& further, Damage& damage,
           image::MemoryBudget& memory)
      : source_(source),
        damage_(damage),
        denormalizer_(denormalizer),
        list_(list),
        reader_(list),
        further_fields_(further),
        further_(further),
        decode_(convert::decode_options_from(source.info())),
        preprocessor_(convert::preprocess_options_from(source.info())),
        stored_(source.info().spec.size_bytes()),
        made_(stored_.size()),
        stored_bytes_(source.info().spec.elements()),
        made_bytes_(stored_bytes_.size()),
        pages_(source.info().provenance.contains("pages")) {
    decode_.max_pixels = options.max_pixels;
    decode_.memory = &memory;
  }

  void compare(std::uint64_t index) {
    std::string key;
    const bool whole = damage_.survives(index, [&] {
      source_.read(index, stored_);
      key = key_of(source_, index);
    });
    if (!whole) return;
    // What would be a reject of the conversion cannot be compared; any other error ends the command.
    std::span<const std::byte> file;
    try {
      const convert::Input input = input_of(unescape_key(key));
      file = reader_.read(input);
      decode_.page = input.page_number();
    } catch (const convert::UnreadableInput& error) {
      return miss(index, error.what());
    }
    std::span<const std::span<const std::byte>> fields;
    try {
      preprocessor_.run_file(decoder_, file, decode_, made_);
      if (!further_fields_.empty()) {
        further_.read(index, 0);
        const image::WideInfo info = image::read_wide_info(file, decode_.max_pixels, decode_.page);
        fields = further_.samples(decoder_, {info.width, info.height}, decode_);
      }
    } catch (const Error& error) {
      return miss(index, convert::reject_reason(error));
    }
    Tally one;
    one.compared = 1;
    one.values = stored_bytes_.size();
    one.worst = index;
    if (std::memcmp(stored_.data(), made_.data(), stored_.size()) == 0) {
      one.identical = 1;
    } else {
      measure(one);
    }
    for (std::size_t f = 0; f < fields.size(); ++f)
      compare_field(further_fields_[f].spec.name, index, fields[f], one);
    tally.merge(one);
  }

  Tally tally;

 private:
  void compare_field(const std::string& name, std::uint64_t index, std::span<const std::byte> made,
                     Tally& one) {
    field_.resize(made.size());
    const std::size_t field = *find_field(source_.info().fields, name);
    const bool whole = damage_.survives(index, [&] { source_.read(index, field_, field); });
    one.fields[name] = whole && std::memcmp(field_.data(), made.data(), made.size()) != 0 ? 1 : 0;
  }
  void measure(Tally& one) {
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

  // No file has the key of a page of another one: the conversion refuses these.
  convert::Input input_of(const std::string& name) const {
    const convert::PageName page = pages_ ? convert::page_name(name) : convert::PageName{name};
    const bool is_page = page.page != convert::Input::kNoPage;
    if (list_.archives.empty()) {
      std::error_code error;
      if (!is_page || std::filesystem::exists(list_.root / name, error)) return {name};
      convert::Input input{std::string(page.path)};
      input.page = page.page;
      return input;
    }
    if (const convert::Input* const found = convert::find_input(list_, name)) return *found;
    const convert::Input* const file = is_page ? convert::find_input(list_, page.path) : nullptr;
    if (file == nullptr) throw convert::UnreadableInput(ErrorCode::not_found, "is not in the archives");
    convert::Input input = *file;
    input.page = page.page;
    return input;
  }

  const Source& source_;
  Damage& damage_;
  const Denormalizer& denormalizer_;
  const convert::InputList& list_;
  convert::InputReader reader_;
  const std::vector<convert::FurtherField>& further_fields_;
  convert::FurtherReader further_;
  std::vector<std::byte> field_;
  image::Decoder decoder_;
  image::DecodeOptions decode_;
  image::Preprocessor preprocessor_;
  std::vector<std::byte> stored_;
  std::vector<std::byte> made_;
  std::vector<std::uint8_t> stored_bytes_;
  std::vector<std::uint8_t> made_bytes_;
  bool pages_;  // keys name pages
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

// The fields that are compared too, with the file of each sample.
std::vector<convert::FurtherField> further_of(const CompareOptions& options, const Source& source) {
  convert::TextOptions text{{"mask", options.mask}};
  for (const std::string& pair : options.pairs) text.add("pairs", pair);
  convert::Options parsed;
  convert::apply(text, parsed);
  const std::vector<convert::FurtherImages>& folders = parsed.pairs;
  if (folders.empty()) return {};
  convert::InputList inputs;
  for (std::uint64_t index = 0; index < source.size(); ++index)
    inputs.inputs.push_back({unescape_key(key_of(source, index))});
  return convert::recorded_fields(source.info(), folders, inputs, options.max_pixels);
}

}  // namespace

int compare(const CompareOptions& options) {
  std::error_code no_data_set;
  const std::string folder = options.images.substr(0, options.images.find('#'));
  if (std::filesystem::exists(std::filesystem::path(folder) / "dataset.json", no_data_set))
    return compare_sets(options);
  const Source source = Source::open(options.path);
  std::error_code error;
  convert::InputList list;
  if (convert::source_kind(options.images).has_archives) {
    list = convert::scan({.images = options.images,
                          .layout = options.array_layout == "nhwc"   ? convert::ArrayLayout::nhwc
                                    : options.array_layout == "nchw" ? convert::ArrayLayout::nchw
                                                                     : convert::ArrayLayout::automatic});
  } else if (std::filesystem::is_directory(options.images, error)) {
    list.root = options.images;
  } else {
    const std::string kinds = convert::names_of_kinds([](const convert::SourceKind& kind) {
      return kind.has_archives || kind.scan == convert::scan_folder;
    });
    throw Error(ErrorCode::not_found, fmt::format("{}: not {}; give the one that the data set was made from",
                                                  quoted(options.images), kinds));
  }
  const std::vector<convert::FurtherField> further = further_of(options, source);
  const Denormalizer denormalizer(source.info().spec, source.info().normalization);
  const std::uint64_t count = options.samples == 0 ? source.size() : std::min(options.samples, source.size());
  const unsigned threads = thread_count(options.jobs);
  std::vector<Comparer> comparers;
  comparers.reserve(threads);
  Damage damage;
  image::MemoryBudget memory(image::MemoryBudget::default_bytes());
  for (unsigned i = 0; i < threads; ++i)
    comparers.emplace_back(source, denormalizer, options, list, further, damage, memory);
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
      For arrays of images: nhwc or nchw, where the shape does not say it)")
      ->check(CLI::IsMember({"nhwc", "nchw"}))
      ->type_name("nhwc|nchw");
  add_max_pixels(command, options->max_pixels);
  add_jobs(command, options->jobs);
  add_quiet(command, options->quiet);
  add_json(command, options->json);
  runs(command, chosen, [options] { return compare(*options); });
}

}  // namespace shard::ctl
