#include "shardctl/dataset/sizes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/text.hpp"

namespace shard::ctl {
namespace {

SizeStatistics::Range range_of(std::vector<std::uint32_t>& sides) {
  const auto middle = sides.begin() + static_cast<std::ptrdiff_t>((sides.size() - 1) / 2);
  std::nth_element(sides.begin(), middle, sides.end());
  const auto [least, most] = std::minmax_element(sides.begin(), sides.end());
  return {*least, *middle, *most};
}

std::size_t aspect_of(std::uint64_t height, std::uint64_t width) {
  if (2 * width < height) return 0;
  if (5 * width < 4 * height) return 1;
  if (4 * width <= 5 * height) return 2;
  return width <= 2 * height ? 3 : 4;
}

// Counts the sizes, each of which is height x 2^32 + width.
void count_equal(std::vector<std::uint64_t>& sizes, SizeStatistics& statistics) {
  std::sort(sizes.begin(), sizes.end());
  const auto more = [](const SizeStatistics::Size& a, const SizeStatistics::Size& b) {
    return a.samples > b.samples;
  };
  for (std::size_t i = 0; i < sizes.size();) {
    std::size_t end = i + 1;
    while (end < sizes.size() && sizes[end] == sizes[i]) ++end;
    const SizeStatistics::Size size{static_cast<std::uint32_t>(sizes[i] >> 32U),
                                    static_cast<std::uint32_t>(sizes[i]), end - i};
    ++statistics.different;
    auto& list = statistics.frequent;
    list.insert(std::upper_bound(list.begin(), list.end(), size, more), size);
    if (list.size() > kFrequentSizes) list.pop_back();
    i = end;
  }
}

}  // namespace

std::string spec_text(const SampleSpec& spec) {
  if (spec.is_free())
    return fmt::format("{} {}, {}, any size", to_string(spec.dtype), to_string(spec.layout),
                       cli::counted(spec.channels, "channel"));
  return fmt::format("{} {} [{}]", to_string(spec.dtype), to_string(spec.layout),
                     fmt::join(spec.shape(), ", "));
}

std::string field_text(const FieldSpec& field) {
  if (!field.spec.is_free()) return to_string(field);
  return fmt::format("{} {}, codec {}", to_string(field.role), spec_text(field.spec), to_string(field.codec));
}

std::string size_text(const SampleSpec& spec) { return fmt::format("{}x{}", spec.width, spec.height); }

bool may_be_equal(const SampleSpec& a, const SampleSpec& b) {
  if (!a.is_free() && !b.is_free()) return a == b;
  return a.dtype == b.dtype && a.layout == b.layout && a.channels == b.channels;
}

SizeStatistics size_statistics(const Source& source, std::optional<std::size_t> field) {
  SizeStatistics statistics;
  std::vector<std::uint64_t> sizes;
  sizes.reserve(static_cast<std::size_t>(source.size()));
  for (std::uint32_t i = 0; i < source.shards(); ++i) {
    const StoredImages& images = source.shard(i).images(field);
    source.each_of(i, [&](std::uint64_t, std::uint64_t sample) {
      const SampleSpec of = images.spec_of(sample);
      sizes.push_back(std::uint64_t{of.height} << 32U | of.width);
      statistics.bytes += of.size_bytes();
      statistics.largest_bytes = std::max(statistics.largest_bytes, of.size_bytes());
      ++statistics.aspects[aspect_of(of.height, of.width)];
    });
  }
  statistics.samples = sizes.size();
  count_equal(sizes, statistics);
  std::vector<std::uint32_t> sides(sizes.size());
  std::transform(sizes.begin(), sizes.end(), sides.begin(),
                 [](std::uint64_t size) { return static_cast<std::uint32_t>(size >> 32U); });
  statistics.height = range_of(sides);
  std::transform(sizes.begin(), sizes.end(), sides.begin(),
                 [](std::uint64_t size) { return static_cast<std::uint32_t>(size); });
  statistics.width = range_of(sides);
  return statistics;
}

std::vector<std::pair<std::string, std::string>> size_rows(const SizeStatistics& sizes) {
  const auto range = [](const SizeStatistics::Range& of, const char* what) {
    return fmt::format("{} to {} {}, median {}", of.least, of.most, what, of.median);
  };
  return {{"height", range(sizes.height, "rows")},
          {"width", range(sizes.width, "columns")},
          {"sample bytes", fmt::format("{} on average, {} the largest",
                                       cli::human_count(static_cast<std::uint64_t>(sizes.mean_bytes() + 0.5)),
                                       cli::human_count(sizes.largest_bytes))}};
}

Json size_json(const SizeStatistics& sizes) {
  const auto range = [](const SizeStatistics::Range& of) {
    return Json{{"min", of.least}, {"median", of.median}, {"max", of.most}};
  };
  Json json = {{"height", range(sizes.height)},
               {"width", range(sizes.width)},
               {"sample_bytes", {{"mean", sizes.mean_bytes()}, {"max", sizes.largest_bytes}}},
               {"different", sizes.different},
               {"frequent", Json::array()},
               {"aspect_ratios", Json::array()}};
  for (const SizeStatistics::Size& size : sizes.frequent)
    json["frequent"].push_back({{"height", size.height}, {"width", size.width}, {"samples", size.samples}});
  for (std::size_t i = 0; i < kAspects.size(); ++i)
    json["aspect_ratios"].push_back({{"width_to_height", kAspects[i]}, {"samples", sizes.aspects[i]}});
  return json;
}

}  // namespace shard::ctl
