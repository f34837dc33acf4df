#include <algorithm>

#include "base/text/quote.hpp"
#include "report/section.hpp"
#include "sections.hpp"

namespace shard::bench {
namespace {

constexpr const char* kJpegDecoder = "JpegDecoder";

std::string levels_text(const ReportJson& one) {
  if (number(one, "values_compared") > 0)
    return fmt::format("{} of {} values", people(one, "values_differ"), people(one, "values_compared"));
  const ReportJson& levels = member(one, "levels_from_reference");
  const ReportJson& allowed = member(one, "levels_allowed");
  if (number(allowed, "mean") == 0 && number(allowed, "most") == 0) return "the converter's bits";
  return fmt::format("{} / {} ({} / {})", people(levels, "mean"), people(levels, "most"),
                     people(allowed, "mean"), people(allowed, "most"));
}

void fill_decode(PageSection& section, const ReportJson& json) {
  const ReportJson& input = member(json, "input");
  const double images = number(input, "images");
  PageTable table{
      fmt::format(
          "{} images ({} left out: no clean JPEG), {} bytes and {} pixels each, to batches of {} on {}",
          people(images), people(input, "excluded"), people(std::round(number(input, "bytes") / images)),
          people(std::round(number(input, "pixels") / images)), people(json, "batch_size"), device_of(json)),
      {"candidate", "images/s", "lowest", "highest", "limit", "of the limit", "cores",
       "levels off, mean / most (allowed)"}};
  PageChart chart{
      "Decoding on the fly", "images/s", {"libjpeg-turbo", "nvJPEG", "decodes only", "JpegDecoder"}};
  std::string best;
  double most = 0;
  for (const ReportJson& one : member(json, "cases")) {
    const std::string name = word(one, "name");
    const Stats rate = range_of(member(one, "samples"), "images_per_second");
    if (!rate.known() || !word(one, "problem").empty()) {
      table.leave_out({name}, word(one, "problem"));
      continue;
    }
    const double limit = number(one, "limit_images_per_second");
    table.add({name, people(rate.median), people(rate.min), people(rate.max), limit > 0 ? people(limit) : "-",
               limit > 0 ? percent(rate.median / limit) : "-", people(one, "cores"), levels_text(one)});
    const bool only = name.find("decode only") != std::string::npos;
    const bool called = number(one, "callers") > 0;
    const unsigned group = only ? 2 : called ? 3 : name.starts_with("nvJPEG") ? 1 : 0;
    chart.bars.push_back({name, rate.median, limit > 0 ? limit : 0, group});
    if (rate.unsteady()) section.unsteady.push_back(name);
    std::string note = (called ? std::string(kJpegDecoder) : name) + ": " + word(one, "how");
    const double scaled = number(member(one, "levels_from_full_decoding"), "mean");
    if (scaled > 0) note += fmt::format("; {} levels from decoding in full on average", people(scaled));
    if (!word(one, "limited_by").empty()) note += fmt::format("; limit: {}", quoted(word(one, "limited_by")));
    if (called)
      note += fmt::format("; {} of {} images that were compared whole were left to the host",
                          people(one, "left_to_host"), people(one, "checked"));
    if (number(one, "images") < images)
      note += fmt::format("; {} of the images, it does not take the others", people(one, "images"));
    if (!called || section.notes.empty() || section.notes.back() != note) section.notes.push_back(note);
    if (only || rate.median <= most) continue;
    most = rate.median;
    best = name;
  }
  if (std::all_of(chart.bars.begin(), chart.bars.end(), [](const PageBar& bar) { return bar.group == 0; }))
    chart.groups.clear();
  else if (std::none_of(chart.bars.begin(), chart.bars.end(),
                        [](const PageBar& bar) { return bar.group == 3; }))
    chart.groups.pop_back();
  if (!best.empty())
    section.says = fmt::format("The fastest way to make batches on {}: {}, {} images/s.", device_of(json),
                               best, people(most));
  section.charts.push_back(chart);
  section.tables.push_back(table);
  section.notes.push_back(
      fmt::format("Short side to {0}, centre {1}x{1}, float16 [channel, row, column], normalised. Limit of "
                  "libjpeg-turbo: whole "
                  "images to pixels alone, same threads, same DCT, files in memory; a crop needs less of an "
                  "image, so that more "
                  "than 100 % is possible.",
                  people(json, "resize"), people(json, "crop")));
  const auto left_out = [&](const std::string& name, const std::string& reason) {
    if (!reason.empty()) section.notes.push_back(fmt::format("{} was left out: {}", name, reason));
  };
  left_out("nvJPEG", word(json, "nvjpeg_absent"));
  left_out(kJpegDecoder, word(json, "jpeg_decoder_absent"));
}

}  // namespace

PageSection decode_section(const ReportJson& json) {
  return section_of("decode", "Decoding on the fly", json, fill_decode);
}

}  // namespace shard::bench
