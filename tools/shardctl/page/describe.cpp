#include "shardctl/page/describe.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "cli/text.hpp"
#include "shard/keys.hpp"
#include "shard/version.hpp"
#include "shardctl/dataset/sizes.hpp"
#include "shardctl/draw/picture.hpp"

namespace shard::ctl {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kListedShards = 50;
constexpr std::size_t kBins = 64;  // of a histogram

std::uint64_t bytes_of_shards(const DatasetInfo& info) {
  std::uint64_t bytes = 0;
  for (const ShardSummary& shard : info.shards) bytes += shard.size_bytes;
  return bytes;
}

std::string normalization_text(const DatasetInfo& info) {
  return fmt::format("mean {}, std {} ({})", fmt::join(info.normalization.mean, ", "),
                     fmt::join(info.normalization.std, ", "),
                     info.spec.dtype == DType::u8 || info.spec.dtype == DType::u16
                         ? "to be applied after loading"
                         : "applied");
}

// How the sizes of samples of any size are distributed.
void add_sizes(Json& facts, const SizeStatistics& sizes) {
  for (auto& [name, value] : size_rows(sizes)) {
    name.front() = static_cast<char>(name.front() - 'a' + 'A');
    facts.push_back({name, value});
  }
  std::vector<std::string> aspects;
  for (std::size_t i = 0; i < kAspects.size(); ++i)
    if (sizes.aspects[i] > 0)
      aspects.push_back(fmt::format("{}: {}", kAspects[i], cli::human_count(sizes.aspects[i])));
  facts.push_back({"Width : height", fmt::format("{}", fmt::join(aspects, "; "))});
  std::vector<std::string> frequent;
  for (const SizeStatistics::Size& size : sizes.frequent)
    frequent.push_back(fmt::format("{}x{}: {}", size.width, size.height, cli::human_count(size.samples)));
  const bool all = sizes.different == frequent.size();
  facts.push_back({all ? "Sizes" : "Most frequent sizes",
                   fmt::format("{}{}", fmt::join(frequent, "; "),
                               all ? "" : fmt::format(" ({} in all)", cli::human_count(sizes.different)))});
}

// Of the picture of a sample of any size. Where all samples have one size, the page has it once.
void add_picture_size(Json& sample, const Source& source, std::uint64_t index) {
  if (!source.info().spec.is_free()) return;
  const SampleSpec spec = source.spec_of(index);
  const image::Size size = picture_size({spec.width, spec.height});
  sample["width"] = size.width;
  sample["height"] = size.height;
}

Json facts_of(const Source& source) {
  const DatasetInfo& info = source.info();
  Json facts = Json::array();
  const auto add = [&](const char* name, const std::string& value) { facts.push_back({name, value}); };
  const std::uint64_t bytes = bytes_of_shards(info);
  add("Samples", cli::human_count(source.size()));
  if (info.spec.is_free()) {
    add("Sample", spec_text(info.spec));
    add_sizes(facts, size_statistics(source));
  } else {
    add("Sample",
        fmt::format("{}, {} bytes", spec_text(info.spec), cli::human_count(info.spec.size_bytes())));
  }
  add("Codec", to_string(info.codec));
  const std::string shards = cli::counted(info.shards.size(), "shard");
  if (source.is_part()) {
    add("Size on disk", fmt::format("part of {} of {}", shards, cli::human_bytes(bytes)));
  } else {
    add("Size on disk", fmt::format("{} in {}", cli::human_bytes(bytes), shards));
    add("Per sample", cli::human_bytes(bytes / source.size()));
  }
  add("Normalisation", normalization_text(info));
  if (source.is_dataset() && !source.is_part()) {
    add("Inputs", fmt::format("{}, of which {} rejected", cli::human_count(info.inputs),
                              cli::human_count(info.rejects)));
  }
  add("Fingerprint", info.fingerprint);
  add("Page made by", std::string("shardctl ") + SHARD_VERSION_STRING);
  return facts;
}

Json files_of(const Source& source, const fs::path& folder) {
  Json files = Json::array();
  const auto& shards = source.info().shards;
  for (std::size_t i = 0; i < std::min(shards.size(), kListedShards); ++i)
    files.push_back(
        {{"name", shards[i].file}, {"samples", shards[i].samples}, {"size_bytes", shards[i].size_bytes}});
  if (!source.is_dataset()) return files;
  for (const char* name : {kDatasetFile, kInputsFile, kRejectsFile}) {
    std::error_code missing;
    const auto size = fs::file_size(folder / name, missing);
    if (!missing) files.push_back({{"name", name}, {"samples", nullptr}, {"size_bytes", size}});
  }
  return files;
}

std::string channel_name(std::size_t channel, std::size_t channels) {
  constexpr std::array<const char*, 3> kColours{"red", "green", "blue"};
  if (channels == 1) return "gray";
  if (channels == 3) return kColours[channel];
  return fmt::format("channel {}", channel);
}

std::string key_at(const Source& source, std::uint64_t index) {
  const Source::Sample sample = source.locate(index);
  return sample.reader.key(sample.index);
}

}  // namespace

Json describe_source(const Source& source, const std::string& path) {
  const DatasetInfo& info = source.info();
  const DatasetPath of = parse_dataset_path(path);
  std::error_code unknown;
  fs::path whole = fs::weakly_canonical(of.folder, unknown);
  if (unknown) whole = of.folder;
  Json data;
  data["name"] = path_text(whole.filename()) + (of.selection.empty() ? "" : "#" + of.selection);
  data["summary"] = cli::counted(source.size(), "sample");
  if (!info.spec.is_free()) {
    const image::Size size = picture_size({info.spec.width, info.spec.height});
    data["width"] = size.width;
    data["height"] = size.height;
  }
  data["facts"] = facts_of(source);
  data["pipeline"] = Json::array();
  for (const auto& [key, value] : info.provenance) data["pipeline"].push_back({key, escape_key(value)});
  data["files"] = files_of(source, whole);
  data["more_files"] = info.shards.size() - std::min(info.shards.size(), kListedShards);
  return data;
}

void add_classes(Json& data, const Source& source, const std::vector<PageClass>& classes) {
  data["classes"] = Json::array();
  for (const PageClass& one : classes)
    data["classes"].push_back({{"name", one.name}, {"samples", one.samples}});
  if (classes.empty()) {
    data["class_note"] = source.info().classes.empty()
                             ? "The labels are not class numbers, or of too many kinds to list."
                             : "There are too many classes to list.";
    return;
  }
  const auto by_size = [](const PageClass& a, const PageClass& b) { return a.samples < b.samples; };
  const auto [least, most] = std::minmax_element(classes.begin(), classes.end(), by_size);
  const std::string each = least->samples == most->samples
                               ? fmt::format("{} each", cli::counted(most->samples, "sample"))
                               : fmt::format("{} to {} samples", cli::human_count(least->samples),
                                             cli::human_count(most->samples));
  data["class_note"] =
      fmt::format("{} class{}, {}", cli::human_count(classes.size()), classes.size() == 1 ? "" : "es", each);
}

void add_channels(Json& data, const ChannelStatistics& statistics) {
  data["channel_note"] =
      fmt::format("Of {}, values 0 to 255, normalisation undone", cli::counted(statistics.samples, "sample"));
  data["channels"] = Json::array();
  for (std::size_t channel = 0; channel < statistics.channels.size(); ++channel) {
    const ChannelCounts& counts = statistics.channels[channel];
    std::array<std::uint64_t, kBins> bins{};
    for (std::size_t byte = 0; byte < 256; ++byte) bins[byte * kBins / 256] += counts.count[byte];
    data["channels"].push_back({{"name", channel_name(channel, statistics.channels.size())},
                                {"mean", counts.mean()},
                                {"std", counts.deviation()},
                                {"min", counts.lowest()},
                                {"max", counts.highest()},
                                {"histogram", bins}});
  }
}

void add_samples(Json& data, const Source& source, const std::vector<ShownSample>& samples,
                 const std::set<std::uint64_t>& pictures, std::uint64_t per_class) {
  data["samples"] = Json::array();
  for (const ShownSample& sample : samples) {
    if (!pictures.contains(sample.index)) continue;
    data["samples"].push_back(
        {{"index", sample.index}, {"class", sample.position}, {"key", key_at(source, sample.index)}});
    add_picture_size(data["samples"].back(), source, sample.index);
  }
  const bool grouped = !samples.empty() && samples.front().position >= 0;
  data["gallery_note"] = grouped ? fmt::format("Random samples, up to {} of each class", per_class)
                                 : std::string("Random samples");
}

void add_rejects(Json& data, const Source& source, const Rejects& rejects) {
  data["rejects"] = Json::array();
  for (const RejectGroup& group : rejects.groups) {
    Json examples = Json::array();
    for (const auto& [path, reason] : group.examples)
      examples.push_back({{"path", path}, {"reason", reason}});
    data["rejects"].push_back({{"reason", group.reason}, {"count", group.count}, {"examples", examples}});
  }
  if (!source.is_dataset())
    data["reject_note"] = "A single shard does not say which files were rejected.";
  else if (!rejects.readable)
    data["reject_note"] =
        fmt::format("{} is missing or damaged; this is what could be read of it.", kRejectsFile);
  else if (source.is_part())
    data["reject_note"] =
        fmt::format("{} of the whole data set {} not stored", cli::counted(rejects.total, "input"),
                    rejects.total == 1 ? "was" : "were");
  else
    data["reject_note"] =
        fmt::format("{} of {} inputs {} not stored", cli::human_count(rejects.total),
                    cli::human_count(source.info().inputs), rejects.total == 1 ? "was" : "were");
}

std::set<std::uint64_t> pictured_duplicates(const Members& members) {
  std::set<std::uint64_t> indices;
  for_each_group(members, [&](std::span<const Member> group) {
    if (group.front().group < kPageGroups) indices.insert(group.front().sample);
  });
  return indices;
}

void add_duplicates(Json& data, const SetList& sets, const Members& members,
                    const std::set<std::uint64_t>& pictures) {
  data["duplicates"] = Json::array();
  std::uint64_t groups = 0;
  for_each_group(members, [&](std::span<const Member> group) {
    ++groups;
    if (group.front().group >= kPageGroups || !pictures.contains(group.front().sample)) return;
    Json samples = Json::array();
    for (const Member& member : group.first(std::min(group.size(), kPageMembers))) {
      samples.push_back(
          {{"index", member.sample}, {"key", sets.key(member.sample)}, {"label", sets.label(member.sample)}});
      add_picture_size(samples.back(), sets.source(0), member.sample);
    }
    data["duplicates"].push_back({{"labels_differ", sets.labels_differ(group)},
                                  {"more", group.size() - samples.size()},
                                  {"samples", std::move(samples)}});
  });
  std::string note = groups == 0 ? "No two samples are equal."
                                 : fmt::format("{} in {}", cli::counted(members.size(), "equal sample"),
                                               cli::counted(groups, "group"));
  if (groups > kPageGroups) note += fmt::format("; the first {} are shown", kPageGroups);
  data["duplicate_note"] = note;
}

void add_augmented(Json& data, const Source& source, const std::string& policy,
                   const std::vector<std::uint64_t>& indices, std::uint32_t epochs) {
  Json samples = Json::array();
  for (const std::uint64_t index : indices) {
    const Source::Sample sample = source.locate(index);
    samples.push_back({{"index", index}, {"key", sample.reader.key(sample.index)}});
  }
  data["augmented"] = {
      {"note",
       fmt::format(
           "As it is stored, then what training gets in epochs 0 to {}: random-resized-crop, flip, {}",
           epochs - 1, policy)},
      {"epochs", epochs},
      {"samples", std::move(samples)}};
}

void add_no_duplicates(Json& data, const std::string& why) {
  data["duplicates"] = Json::array();
  data["duplicate_note"] = why;
}

}  // namespace shard::ctl
