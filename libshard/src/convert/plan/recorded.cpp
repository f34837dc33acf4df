#include "shard/convert/recorded.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/digest/checksum.hpp"
#include "base/text/number.hpp"
#include "base/text/quote.hpp"
#include "shard/convert/decoding.hpp"
#include "shard/error.hpp"

namespace shard::convert {

namespace {

constexpr const char* kPagesAsStored = "each";
constexpr const char* kPagesAsRgb = "each as RGB";

std::string size_text(const image::Size& size) { return fmt::format("{}x{}", size.width, size.height); }

std::optional<image::Size> parse_size_text(std::string_view text) {
  const std::size_t x = std::min(text.find('x'), text.size());
  const auto width = number_of<std::uint32_t>(text.substr(0, x));
  const auto height = number_of<std::uint32_t>(text.substr(std::min(x + 1, text.size())));
  if (!width || !height) return std::nullopt;
  return image::Size{*width, *height};
}

constexpr std::array<std::pair<image::FreeSize::Bound, std::string_view>, 4> kBounds{
    {{image::FreeSize::Bound::none, "original"},
     {image::FreeSize::Bound::longest, "longest"},
     {image::FreeSize::Bound::shortest, "shortest"},
     {image::FreeSize::Bound::area, "area"}}};

// "original", "longest 1024", "shortest 512" or "area 1000000".
std::string text_of(const image::FreeSize& free) {
  const std::string name(kBounds.at(static_cast<std::size_t>(free.bound)).second);
  return free.bound == image::FreeSize::Bound::none ? name : fmt::format("{} {}", name, free.most);
}

// The inverse of text_of(). Nothing: it is none.
std::optional<image::FreeSize> parse_free_size(std::string_view text) {
  const std::string_view name = text.substr(0, text.find(' '));
  for (const auto& [bound, its_name] : kBounds) {
    if (name != its_name) continue;
    image::FreeSize free{bound, 0, 1};
    if (bound == image::FreeSize::Bound::none) return text == name ? std::optional(free) : std::nullopt;
    const auto most = number_of<std::uint64_t>(text.substr(std::min(name.size() + 1, text.size())));
    if (!most) return std::nullopt;
    free.most = *most;
    return free;
  }
  return std::nullopt;
}

const std::string& require(const Provenance& provenance, const char* key) {
  auto it = provenance.find(key);
  if (it == provenance.end())
    throw Error(ErrorCode::unsupported,
                fmt::format("the data set does not record its {}: it was not made by shardify", quoted(key)));
  return it->second;
}

[[noreturn]] void unknown(const char* key, const std::string& value) {
  throw Error(
      ErrorCode::unsupported,
      fmt::format("the recorded {} {} is not known to this version: use the version that made the data set",
                  key, quoted(value)));
}

}  // namespace

Provenance provenance_of(const Options& options) {
  const image::PreprocessOptions& p = options.preprocess;
  Provenance provenance;
  provenance["decoder"] = image::decoder_versions();
  provenance["fast_decode"] = options.fast_decode ? "on" : "off";
  provenance["orientation"] = "exif";
  if (p.free_size) {
    provenance["resize"] = text_of(*p.free_size);
    provenance["crop"] =
        p.free_size->multiple == 1 ? "none" : fmt::format("multiple {}", p.free_size->multiple);
  } else {
    provenance["resize"] =
        p.squash ? "squash " + size_text(*p.squash) : fmt::format("short {}", p.resize_short);
    provenance["crop"] = p.crop ? "center " + size_text(*p.crop) : "none";
  }
  provenance["filter"] = std::string(image::to_string(p.filter));
  if (p.wide()) provenance["channels"] = fmt::to_string(options.preprocess.sample_spec().channels);
  // Of RGB, "each" stands in data sets whose pages are all the first one.
  if (options.pages) provenance["pages"] = p.wide() ? kPagesAsStored : kPagesAsRgb;
  if (options.depth != 0) provenance["depth"] = fmt::to_string(options.depth);
  if (options.no_sample_digest) provenance["sample_digests"] = "none";
  if (options.on_warning != image::OnWarning::harmless)
    provenance["on_warning"] = std::string(image::to_string(options.on_warning));
  return provenance;
}

bool has_wrong_pages(const Provenance& provenance) {
  const auto pages = provenance.find("pages");
  return pages != provenance.end() && pages->second == kPagesAsStored && !provenance.contains("channels");
}

void refuse_wrong_pages(const Provenance& provenance, const std::filesystem::path& of) {
  if (has_wrong_pages(provenance))
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("the pixels in {} are wrong: {}. Convert its images again, with `overwrite` or into "
                    "another folder",
                    quoted(of), kWrongPages));
}

std::string fingerprint_of(const DatasetSpec& of, std::uint64_t per_shard) {
  const SampleSpec& spec = of.spec;
  const Normalization& n = of.normalization;
  const ColumnSpec& labels = of.columns.front();
  std::string text;
  for (const auto& [key, value] : of.provenance) text += fmt::format("{}={}\n", key, value);
  text += fmt::format("sample={} {} {}\n", to_string(spec.dtype), to_string(spec.layout),
                      fmt::join(spec.shape(), ","));
  text += fmt::format("normalization={} {}\n", fmt::join(n.mean, ","), fmt::join(n.std, ","));
  text += fmt::format("codec={}\n", to_string(of.codec));
  text += fmt::format("labels={} {}\n", to_string(labels.dtype), fmt::join(labels.row_shape, ","));
  for (std::size_t c = 1; c < of.columns.size(); ++c)
    text += fmt::format("column={} {}\n", of.columns[c].name, to_string(of.columns[c]));
  for (const FieldSpec& field : of.fields)
    text += fmt::format("field={} {} normalization={} {}\n", field.name, to_string(field),
                        fmt::join(field.normalization.mean, ","), fmt::join(field.normalization.std, ","));
  text += fmt::format("samples_per_shard={}\n", per_shard);
  return fmt::format("{:016x}", xxh3(text));
}

DatasetSpec spec_of(const Options& options, std::vector<ColumnSpec> columns, const Provenance& more,
                    std::vector<FieldSpec> fields) {
  DatasetSpec spec;
  spec.spec = options.preprocess.sample_spec();
  spec.normalization = options.preprocess.normalization;
  spec.provenance = provenance_of(options);
  spec.provenance.insert(more.begin(), more.end());
  spec.codec = options.codec;
  spec.columns = std::move(columns);
  spec.fields = std::move(fields);
  spec.fingerprint = fingerprint_of(spec, options.per_shard());
  return spec;
}

// Data sets of earlier versions do not record the samples per shard. It is found by comparing fingerprints:
// as many as a shard of the default size holds (today's default or the former one), or as many as the fullest
// shard has, plus 0, 1, 2, ... rejects.
std::string fingerprint_with_codec(const DatasetInfo& info, const CodecSpec& codec) {
  constexpr std::uint64_t kMaxTries = 100'000;
  constexpr std::uint64_t kFormerDefault = std::uint64_t{256} << 20U;
  DatasetSpec other = info;
  other.codec = codec;
  if (info.samples_per_shard != 0) return fingerprint_of(other, info.samples_per_shard);
  std::uint64_t fullest = 1;
  for (const ShardSummary& shard : info.shards) fullest = std::max(fullest, shard.samples);
  for (const std::uint64_t shard_bytes : {Options{}.shard_bytes, kFormerDefault}) {
    if (info.spec.is_free()) break;  // these always record it
    const std::uint64_t by_default = std::max<std::uint64_t>(1, shard_bytes / info.spec.size_bytes());
    if (fingerprint_of(info, by_default) == info.fingerprint) return fingerprint_of(other, by_default);
  }
  for (std::uint64_t more = 0; more <= std::min(info.rejects, kMaxTries); ++more)
    if (fingerprint_of(info, fullest + more) == info.fingerprint)
      return fingerprint_of(other, fullest + more);
  return fmt::format("{:016x}", xxh3(fmt::format("{} codec={}\n", info.fingerprint, to_string(codec))));
}

image::PreprocessOptions preprocess_options_from(const DatasetInfo& info) {
  image::PreprocessOptions p;
  const std::string& resize = require(info.provenance, "resize");
  if (resize.starts_with("squash ")) {
    p.squash = parse_size_text(std::string_view(resize).substr(7));
    if (!p.squash) unknown("resize", resize);
  } else if (resize.starts_with("short ")) {
    const auto side = number_of<std::uint32_t>(std::string_view(resize).substr(6));
    if (!side) unknown("resize", resize);
    p.resize_short = *side;
  } else {
    p.free_size = parse_free_size(resize);
    if (!p.free_size) unknown("resize", resize);
  }
  const std::string& crop = require(info.provenance, "crop");
  if (p.free_size) {
    constexpr std::string_view kMultiple = "multiple ";
    if (crop != "none") {
      const auto multiple = crop.starts_with(kMultiple)
                                ? number_of<std::uint32_t>(std::string_view(crop).substr(kMultiple.size()))
                                : std::nullopt;
      if (!multiple) unknown("crop", crop);
      p.free_size->multiple = *multiple;
    }
  } else if (crop == "none") {
    p.crop.reset();
  } else {
    p.crop = crop.starts_with("center ") ? parse_size_text(std::string_view(crop).substr(7)) : std::nullopt;
    if (!p.crop) unknown("crop", crop);
  }
  const std::string& filter = require(info.provenance, "filter");
  auto known = image::filter_from_string(filter);
  if (!known) unknown("filter", filter);
  p.filter = *known;
  p.dtype = info.spec.dtype;
  p.layout = info.spec.layout;
  p.normalization = info.normalization;
  if (info.provenance.contains("channels")) p.channels = info.spec.channels;
  p.check();
  return p;
}

image::DecodeOptions decode_options_from(const DatasetInfo& info) {
  image::DecodeOptions options;
  if (require(info.provenance, "fast_decode") == "on")
    options.fast_min_short_side = fast_decode_side(preprocess_options_from(info));
  if (const auto recorded = info.provenance.find("depth"); recorded != info.provenance.end()) {
    const std::string& text = recorded->second;
    options.depth = number_of<unsigned>(text).value_or(0);
    if (options.depth < 9 || options.depth > 16) unknown("depth", text);
  }
  if (const auto recorded = info.provenance.find("on_warning"); recorded != info.provenance.end()) {
    const auto choice = image::on_warning_from_string(recorded->second);
    if (!choice) unknown("on_warning", recorded->second);
    options.on_warning = *choice;
  }
  return options;
}

}  // namespace shard::convert
