#include "shardify/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/text/quote.hpp"
#include "cli/flags.hpp"
#include "cli/output.hpp"
#include "cli/text.hpp"
#include "shard/convert/recorded.hpp"
#include "shard/dataset.hpp"
#include "shard/keys.hpp"

namespace shard::shardify {

namespace {

using Json = nlohmann::ordered_json;
using cli::human_bytes;
using cli::human_count;
using cli::human_duration;

std::string dump(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

// A path as text for JSON or a terminal. Bytes that are not UTF-8 are escaped.
std::string shown(const std::filesystem::path& path) { return escape_key(path.string()); }

Json describe(const convert::Options& options) {
  const SampleSpec spec = options.preprocess.sample_spec();
  return {{"dtype", to_string(spec.dtype)},
          {"layout", to_string(spec.layout)},
          {"shape", spec.shape()},
          {"sample_bytes", spec.is_free() ? Json(nullptr) : Json(spec.size_bytes())},
          {"codec", to_string(options.codec)},
          {"jobs", options.threads()},
          {"pipeline", convert::provenance_of(options)}};
}

// `mean_bytes`: of samples of any size; 0 if it is not known.
std::string sample_text(const convert::Options& options, double mean_bytes = 0) {
  const SampleSpec spec = options.preprocess.sample_spec();
  if (spec.is_free()) {
    std::string text = fmt::format("{} {}, {}, any size", to_string(spec.dtype), to_string(spec.layout),
                                   cli::counted(spec.channels, "channel"));
    if (mean_bytes > 0)
      text += fmt::format(", about {} on average", human_bytes(static_cast<std::uint64_t>(mean_bytes)));
    return text + ", codec " + to_string(options.codec);
  }
  return fmt::format("{} [{}] {}, {} each, codec {}", to_string(spec.dtype), fmt::join(spec.shape(), ", "),
                     to_string(spec.layout), human_bytes(spec.size_bytes()), to_string(options.codec));
}

// Why files are skipped: the name in JSON, and what is printed of one or more.
struct SkipText {
  convert::SkipReason reason;
  const char* name;
  const char* text;
};
constexpr std::array kSkips{
    SkipText{convert::SkipReason::hidden, "hidden", "hidden names"},
    SkipText{convert::SkipReason::litter, "litter", "left by systems or programs"},
    SkipText{convert::SkipReason::no_image, "no_image", "no images by name or content"},
    SkipText{convert::SkipReason::walked, "walked",
             "links to folders whose images are in the class already"}};

std::uint64_t count_of(const convert::Listing& found, convert::SkipReason reason) {
  return static_cast<std::uint64_t>(
      std::count_if(found.skipped.begin(), found.skipped.end(),
                    [&](const convert::Skip& skip) { return skip.reason == reason; }));
}

// "a, b, c". Of many names only the first ones and the last.
std::string names_text(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 10;
  constexpr std::size_t kShownBytes = 300;
  std::string text;
  std::size_t count = 0;
  while (count < names.size() && count < kShown && text.size() + names[count].size() <= kShownBytes) {
    text += (count > 0 ? ", " : "") + names[count];
    ++count;
  }
  if (count == names.size()) return text;
  const std::string& last = names.back();
  return text + (count > 0 ? ", ..." : "...") + (last.size() <= kShownBytes ? ", " + last : "");
}

void print_skipped(const convert::Options& options, const convert::Listing& found) {
  std::string text;
  for (const SkipText& skipped : kSkips) {
    const std::uint64_t count = count_of(found, skipped.reason);
    if (count == 0) continue;
    const auto first = std::find_if(found.skipped.begin(), found.skipped.end(),
                                    [&](const convert::Skip& skip) { return skip.reason == skipped.reason; });
    text += fmt::format("{}{}: {} ({}{})", text.empty() ? "" : "; ", skipped.text, human_count(count),
                        count > 1 ? "first " : "", quoted_key(first->key));
  }
  if (!text.empty()) cli::out("skipped: {}\n", text);
  if (!found.empty_folders.empty())
    cli::out("no classes: {} without images: {}\n", cli::counted(found.empty_folders.size(), "folder"),
             names_text(found.empty_folders));
  if (found.unlisted > 0)
    cli::out("left out: {} that {} does not name (--unlisted skip)\n", cli::counted(found.unlisted, "image"),
             quoted(options.labels));
}

void print_count(const convert::AnnotationCounts::Count& count, std::string_view what) {
  if (count.number > 0)
    cli::out("  {} {}: {}{}\n", human_count(count.number), what, count.number > 1 ? "first " : "",
             count.first);
}

void print_further(const convert::Options& options, const convert::Listing& found) {
  for (const convert::FurtherCounts& counts : found.further) {
    if (counts.without.number + counts.unused.number == 0) continue;
    cli::out("{}:\n", counts.name);
    print_count(counts.without, options.missing == convert::Missing::skip ? "images without, left out"
                                                                          : "images without, zeros stored");
    print_count(counts.unused, "files without their image");
  }
}

// The counts of codec jpeg are of the main images.
void print_encoded_pairs(const convert::Options& options) {
  for (const convert::FurtherImages& pair : options.pairs)
    if (pair.codec && pair.codec->kind == CodecSpec::Kind::jpeg)
      cli::out("{}: all encoded with quality {}, JPEG files too\n", pair.name, pair.codec->level);
}

void print_annotations(const convert::Options& options, const convert::AnnotationCounts& found) {
  if (options.coco.empty() && options.yolo.empty() && options.voc.empty()) return;
  cli::out("annotations: {}\n", cli::counted(found.objects, "object"));
  const auto& print = print_count;
  print(found.images_without,
        options.missing == convert::Missing::skip ? "images without, left out" : "images without");
  print(found.without_image, "annotations without their image");
  print(found.unknown_category, "of unknown categories, left out");
  print(found.invalid_boxes, "boxes without area, left out");
  print(found.cut_away, "objects outside of the crop, left out");
  print(found.beyond_image, "boxes that reach beyond their image, cut");
}

// Classes that are in a list, and have no image.
void print_absent(const convert::Listing& found) {
  if (!found.absent_classes.empty())
    cli::out("without images: {} of the {} classes: {}\n", human_count(found.absent_classes.size()),
             human_count(found.classes.size()), names_text(found.absent_classes));
}

void print_found(const convert::Options& options, const convert::Listing& found) {
  if (!found.classes.empty())
    cli::out("classes: {}: {}\n", human_count(found.classes.size()), names_text(found.classes));
  else if (found.numbers)
    cli::out("classes: none, labels are the numbers that come with the images\n");
  else if (found.annotations.beside_folders.number > 0)
    cli::out("classes: none, every label is 0: {} beside the folders of others, first {}\n",
             cli::counted(found.annotations.beside_folders.number, "image"),
             found.annotations.beside_folders.first);
  else if (options.labels.empty())
    cli::out(
        "classes: none, every label is 0 (no labels come with the images, and none is in a folder below "
        "{})\n",
        quoted(options.images));
  print_absent(found);
  print_skipped(options, found);
  print_annotations(options, found.annotations);
  print_further(options, found);
}

void add_found(Json& out, const convert::Listing& found) {
  out["absent_classes"] = found.absent_classes;
  Json notes = Json::array();
  for (const std::string& text : found.warnings) notes.push_back(cli::with_flags(text));
  out["notes"] = std::move(notes);
  Json skipped = Json::object();
  for (const SkipText& skip : kSkips) skipped[skip.name] = count_of(found, skip.reason);
  out["skipped"] = std::move(skipped);
  out["empty_folders"] = found.empty_folders;
  out["unlisted"] = found.unlisted;
  const convert::AnnotationCounts& annotations = found.annotations;
  out["annotations"] = Json{{"objects", annotations.objects},
                            {"images_without", annotations.images_without.number},
                            {"without_image", annotations.without_image.number},
                            {"unknown_category", annotations.unknown_category.number},
                            {"invalid_boxes", annotations.invalid_boxes.number},
                            {"cut_away", annotations.cut_away.number},
                            {"beyond_image", annotations.beyond_image.number},
                            {"beside_folders", annotations.beside_folders.number}};
  Json further = Json::object();
  for (const convert::FurtherCounts& counts : found.further)
    further[counts.name] =
        Json{{"images_without", counts.without.number}, {"without_image", counts.unused.number}};
  out["further_images"] = std::move(further);
}

Json describe(const image::WarningCounts& counts) {
  Json kinds = Json::object();
  for (std::size_t i = 0; i < image::kWarnings; ++i)
    if (counts.images[i] > 0)
      kinds[std::string(to_string(static_cast<image::Warning>(i)))] = counts.images[i];
  return kinds;
}

// "extraneous_bytes 12, jfif_version 1". Empty: the decoder had no warnings.
std::string warnings_text(const image::WarningCounts& counts) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < image::kWarnings; ++i)
    if (counts.images[i] > 0 && static_cast<image::Warning>(i) != image::Warning::few_bits)
      parts.push_back(
          fmt::format("{} {}", to_string(static_cast<image::Warning>(i)), human_count(counts.images[i])));
  return fmt::format("{}", fmt::join(parts, ", "));
}

Json describe(const convert::JpegCounts& counts) {
  constexpr auto kUses = convert::words_of(convert::JpegUse{});
  Json uses = Json::object();
  for (std::size_t i = 0; i < kUses.size(); ++i) uses[std::string(kUses[i])] = counts.images[i];
  return uses;
}

// "11 files as they are, 2 transcoded without loss, 1 encoded with quality 95". Empty: another codec.
std::string jpeg_text(const convert::JpegCounts& counts, const CodecSpec& codec) {
  using convert::JpegUse;
  std::vector<std::string> parts;
  const auto add = [&](JpegUse use, const std::string& what) {
    if (counts.of(use) > 0) parts.push_back(human_count(counts.of(use)) + what);
  };
  add(JpegUse::kept, counts.of(JpegUse::kept) == 1 ? " file as it is" : " files as they are");
  add(JpegUse::transcoded, " transcoded to baseline without loss");
  add(JpegUse::encoded, fmt::format(" encoded with quality {}", codec.level));
  return fmt::format("{}", fmt::join(parts, ", "));
}

// "" if no image loses most of its values.
std::string few_bits_text(const image::WarningCounts& counts) {
  return cli::with_flags(convert::few_bits_text(counts));
}

void print_few_bits(const image::WarningCounts& counts, std::string_view of) {
  if (const std::string text = few_bits_text(counts); !text.empty()) cli::out("warning: {}{}\n", of, text);
}

}  // namespace

void print_estimate(const convert::Options& options, const convert::Estimate& e,
                    const convert::Listing& found, bool json) {
  const SampleSpec spec = options.preprocess.sample_spec();
  const auto stored = static_cast<std::uint64_t>(static_cast<double>(e.out_bytes) * e.compressed_ratio);
  if (json) {
    Json classes = Json::object();
    for (std::size_t c = 0; c < e.classes.size(); ++c) classes[e.classes[c]] = e.class_counts[c];
    Json out{{"dry_run", true},
             {"images", options.images},
             {"out", shown(options.out)},
             {"inputs", e.inputs},
             {"rejects_while_listing", e.rejects.size()},
             {"classes", classes},
             {"shards", e.shards},
             {"samples_per_shard", e.per_shard},
             {"bytes", stored},
             {"bytes_before_codec", e.out_bytes},
             {"bytes_packed", e.mean_packed_bytes * e.inputs},
             {"free_bytes", e.free_bytes ? Json(*e.free_bytes) : Json(nullptr)},
             {"sampled", e.sampled},
             {"sampled_rejects", e.sampled_rejects},
             {"sized", e.sized},
             {"smaller", e.smaller},
             {"sampled_warnings", describe(e.sampled_warnings)},
             {"mean_input_bytes", e.mean_input_bytes},
             {"seconds", e.seconds},
             {"options", describe(options)}};
    if (spec.is_free()) out["sample_bytes"] = e.sample_bytes == 0 ? Json(nullptr) : Json(e.sample_bytes);
    add_found(out, found);
    return cli::write_out(dump(out));
  }
  cli::out("plan: {} -> {} of up to {} in {}\n", cli::counted(e.inputs, "image"),
           cli::counted(e.shards, "shard"), cli::counted(e.per_shard, "sample"), quoted(options.out));
  cli::out("sample: {}\n", sample_text(options, e.mean_values * static_cast<double>(size_bytes(spec.dtype))));
  for (const auto& [key, value] : convert::provenance_of(options)) cli::out("  {}: {}\n", key, value);
  if (!e.classes.empty()) {
    cli::out("classes: {}\n", e.classes.size());
    cli::Table table({cli::Table::Align::right, cli::Table::Align::left, cli::Table::Align::right}, "  ");
    for (std::size_t c = 0; c < e.classes.size(); ++c)
      table.add_row({std::to_string(c), e.classes[c], human_count(e.class_counts[c])});
    cli::write_out(table.to_string());
  }
  print_absent(found);
  for (const std::string& text : found.warnings) cli::out("warning: {}\n", cli::with_flags(text));
  print_skipped(options, found);
  const bool estimated = e.compressed_ratio < 1 || spec.is_free();
  cli::out("size: {}{}, input about {}\n", human_bytes(stored), estimated ? " (estimated)" : "",
           human_bytes(e.mean_input_bytes * e.inputs));
  if (e.mean_packed_bytes > 0 && options.codec.kind != CodecSpec::Kind::packed)
    cli::out("with --codec packed: about {}, {:.2f} bits per value, without loss\n",
             human_bytes(e.mean_packed_bytes * e.inputs),
             8.0 * static_cast<double>(e.mean_packed_bytes) /
                 (spec.is_free() ? e.mean_values : static_cast<double>(spec.elements())));
  if (e.free_bytes)
    cli::out("free: {}{}\n", human_bytes(*e.free_bytes), *e.free_bytes < stored ? "  NOT ENOUGH" : "");
  cli::out("time: about {} with {} threads ({} images decoded for this estimate, {:.2f} ms each)\n",
           human_duration(e.seconds), options.threads(), e.sampled, 1e3 * e.seconds_per_image);
  if (!e.rejects.empty())
    cli::out("rejected while listing: {}, first: {}: {}\n", e.rejects.size(), e.rejects[0].key,
             e.rejects[0].reason);
  if (e.sampled_rejects > 0) {
    cli::out("rejected of the {} tried: {}\n", e.sampled, e.sampled_rejects);
    for (const auto& reject : e.sampled_reject_list) cli::out("  {}: {}\n", reject.key, reject.reason);
  }
  print_few_bits(e.sampled_warnings, fmt::format("of the {} tried: ", e.sampled));
}

std::vector<std::string> warnings_of(const convert::Summary& summary) {
  std::vector<std::string> texts{few_bits_text(summary.warnings),
                                 cli::with_flags(convert::damaged_text(summary.warnings))};
  std::erase(texts, std::string());
  return texts;
}

void print_summary(const convert::Options& options, const convert::Summary& s, const convert::Listing& found,
                   double seconds, bool json) {
  const double rate = s.convert_seconds > 0 ? static_cast<double>(s.converted) / s.convert_seconds : 0;
  if (json) {
    Json out{{"complete", s.complete},
             {"was_complete", s.was_complete},
             {"append", options.append},
             {"out", shown(options.out)},
             {"inputs", s.inputs},
             {"samples", s.samples},
             {"rejects", s.rejects},
             {"warnings", describe(s.warnings)},
             {"jpeg", describe(s.jpeg)},
             {"shards", s.shards},
             {"bytes", s.size_bytes},
             {"converted", s.converted},
             {"converted_shards", s.converted_shards},
             {"bytes_read", s.bytes_read},
             {"seconds", seconds},
             {"scan_seconds", s.scan_seconds},
             {"convert_seconds", s.convert_seconds},
             {"images_per_second", rate},
             {"stage_seconds",
              {{"read", s.stages.read},
               {"preprocess", s.stages.preprocess},
               {"store", s.stages.store},
               {"publish", s.stages.publish},
               {"wait", s.stages.wait}}},
             {"options", describe(options)}};
    out["classes"] = found.classes;
    add_found(out, found);
    for (const std::string& text : warnings_of(s)) out["notes"].push_back(text);
    return cli::write_out(dump(out));
  }
  if (!s.complete && options.claim) {
    cli::out(
        "this process: {} in {}; other processes hold the last shards of {}, but nothing has happened for 30 "
        "minutes (exit code 3)\n",
        cli::counted(s.converted, "image"), cli::counted(s.converted_shards, "shard"), quoted(options.out));
    return;
  }
  if (!s.complete) {
    cli::out(
        "rank {} of {}: {} images converted; other processes are still working, the last one completes {} "
        "(exit code 3)\n",
        options.rank, options.world_size, human_count(s.converted), quoted(options.out));
    return;
  }
  const char* const done = options.append   ? s.was_complete ? "already appended" : "appended"
                           : s.was_complete ? "already complete"
                                            : "complete";
  cli::out("{}: {} in {}, {}\n", done, cli::counted(s.samples, "sample"), cli::counted(s.shards, "shard"),
           human_bytes(s.size_bytes));
  if (options.append) {
    const convert::Summary whole = convert::summary_of(Dataset::open(options.out).info());
    cli::out("{}: now {} in {}, {}\n", quoted(options.out), cli::counted(whole.samples, "sample"),
             cli::counted(whole.shards, "shard"), human_bytes(whole.size_bytes));
  }
  if (options.claim)
    cli::out("this process: {} in {} of {}\n", cli::counted(s.converted, "image"),
             cli::counted(s.converted_shards, "shard"), human_count(s.shards));
  cli::out("sample: {}\n", sample_text(options));
  if (const std::string text = jpeg_text(s.jpeg, options.codec); !text.empty()) cli::out("JPEG: {}\n", text);
  print_encoded_pairs(options);
  print_found(options, found);
  if (s.converted > 0)
    cli::out("speed: {:.0f} images/s with {} threads, {} in total\n", rate, options.threads(),
             human_duration(seconds));
  if (const std::string text = warnings_text(s.warnings); !text.empty())
    cli::out("stored although the decoder warned (images per kind): {}\n", text);
  for (const std::string& text : warnings_of(s)) cli::out("warning: {}\n", text);
  if (s.rejects > 0)
    cli::out("rejected: {} of {} inputs; see {}\n", human_count(s.rejects), human_count(s.inputs),
             quoted(options.out / kRejectsFile));
}

}  // namespace shard::shardify
