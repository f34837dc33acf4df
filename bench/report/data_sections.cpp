// The sections on images and data sets: converting, decoding, storage, pipelines, the loader.
#include <algorithm>
#include <map>

#include "commands/tiers/tiers_bench.hpp"
#include "report/sections.hpp"

namespace shard::bench {
namespace {

constexpr double kBeyond = 1.1;
constexpr const char* kWhyBeyond =
    "More than 100 % of a limit: other programs ran while it was measured, or the samples fit the "
    "processor's caches; "
    "take a quiet machine or a larger data set.";

std::string device_of(const ReportJson& json) {
  const std::string name = word(json, "device");
  return name == "host" ? "the host" : name;
}

}  // namespace

void fill_convert(PageSection& section, const ReportJson& json) {
  const ReportJson& input = member(json, "input");
  PageTable table{
      fmt::format("{} images of {} pixels on average, preset {}", people(number(input, "images")),
                  people(number(input, "pixels") / number(input, "images")), word(json, "preset")),
      {"threads", "decode, images/s", "convert, images/s", "convert of decode", "lowest", "highest",
       "by CPU time", "written, MB/s"},
      0,
      {}};
  PageChart chart{"Conversion, and decoding alone as its limit", "images/s", {}, {}};
  std::vector<std::string> unsteady;
  for (const ReportJson& one : member(json, "cases")) {
    const auto rate = [&](const char* name) {
      return number(member(member(one, name), "images_per_second"), "median");
    };
    const ReportJson& ratio = member(one, "ratio");
    const std::string jobs = people(number(one, "jobs"));
    table.rows.push_back({{jobs, people(rate("decode")), people(rate("convert")),
                           percent(number(ratio, "median")), percent(number(ratio, "min")),
                           percent(number(ratio, "max")), percent(number(member(one, "cpu_ratio"), "median")),
                           people(number(member(one, "output_mb_per_second"), "median"))},
                          "",
                          false});
    chart.bars.push_back(
        {jobs + (jobs == "1" ? " thread" : " threads"), rate("convert"), rate("decode"), 0, false});
    section.says =
        fmt::format("shardify converts {} images/s on {} threads, {} of the rate of decoding alone.",
                    people(rate("convert")), jobs, percent(number(ratio, "median")));
  }
  section.charts.push_back(chart);
  section.tables.push_back(table);
  section.notes.emplace_back(
      "Limit: libjpeg-turbo decodes the same files from memory on the same threads, in turn, and nothing "
      "else.");
  for (const ReportJson& warning : member(json, "warnings"))
    if (warning.is_string()) section.notes.push_back("Warning: " + warning.get<std::string>());
}

void fill_decode(PageSection& section, const ReportJson& json) {
  PageTable table{
      fmt::format("{} images to batches of {} on {}", people(number(member(json, "input"), "images")),
                  people(number(json, "batch_size")), device_of(json)),
      {"contender", "images/s", "lowest", "highest", "limit", "of the limit", "cores", "levels off, mean",
       "most"},
      1,
      {}};
  PageChart chart{"Decoding on the fly", "images/s", {"makes batches", "decodes only"}, {}};
  std::vector<std::string> unsteady;
  std::string best;
  double most = 0;
  for (const ReportJson& one : member(json, "cases")) {
    const std::string name = word(one, "name");
    const Range rate = range_of(member(one, "samples"), "images_per_second");
    if (!rate.known || !word(one, "problem").empty()) {
      table.rows.push_back({{name}, word(one, "problem"), false});
      continue;
    }
    const double limit = number(one, "limit_images_per_second");
    const ReportJson& levels = member(one, "levels_from_reference");
    table.rows.push_back(
        {{name, people(rate.median), people(rate.lowest), people(rate.highest),
          limit > 0 ? people(limit) : "-", limit > 0 ? percent(rate.median / limit) : "-",
          people(number(one, "cores")), people(number(levels, "mean")), people(number(levels, "most"))},
         "",
         false});
    const bool only = name.find("decode only") != std::string::npos;
    chart.bars.push_back({name, rate.median, limit > 0 ? limit : 0, only ? 1U : 0U, false});
    if (rate.unsteady()) unsteady.push_back(name);
    section.notes.push_back(name + ": " + word(one, "how"));
    if (only || rate.median <= most) continue;
    most = rate.median;
    best = name;
  }
  if (std::none_of(chart.bars.begin(), chart.bars.end(), [](const PageBar& bar) { return bar.group == 1; }))
    chart.groups.clear();
  if (!best.empty())
    section.says = fmt::format("The best that makes batches on {}: {}, {} images/s.", device_of(json), best,
                               people(most));
  section.charts.push_back(chart);
  section.tables.push_back(table);
  section.notes.emplace_back(
      "Limit of libjpeg-turbo: whole images to pixels alone, same threads, files in memory; a crop needs "
      "less of an "
      "image, so that more than 100 % is possible.");
  const std::string absent = word(json, "nvjpeg_absent");
  if (!absent.empty()) section.notes.push_back("nvJPEG was left out: " + absent);
  note_unsteady(section, unsteady);
}

namespace {

std::string cache_of(const ReportJson& row) {
  if (yes(row, "emulated")) return "emulated";
  const std::string cache = word(row, "cache");
  return cache == "around" ? "O_DIRECT" : cache;
}

// The fastest decoding that was measured for real: its images a second and the bytes of one.
std::pair<double, double> fastest_decoding(const ReportJson& rows) {
  std::pair<double, double> best;
  for (const ReportJson& row : rows)
    if (yes(row, "decodes") && !yes(row, "emulated") && number(row, "samples_per_second") > best.first)
      best = {number(row, "samples_per_second"), number(row, "bytes_per_sample")};
  return best;
}

void note_break_even(PageSection& section, const ReportJson& rows) {
  const auto [decoding, image_bytes] = fastest_decoding(rows);
  if (!(decoding > 0)) return;
  std::map<std::string, double> sets;
  for (const ReportJson& row : rows)
    if (!yes(row, "decodes") && number(row, "samples_per_second") > 0)
      sets[word(row, "dataset")] = number(row, "bytes_per_sample");
  for (const auto& [name, bytes] : sets) {
    const double from = break_even(decoding, bytes, image_bytes);
    section.notes.push_back(fmt::format(
        "{}: a sample takes {} bytes, an image {}. This machine decodes {} images/s: by bandwidth alone "
        "precomputed samples are faster {}.",
        name, people(bytes), people(image_bytes), people(decoding),
        from > 0 ? fmt::format("where storage gives more than {} MB/s, images where it gives less",
                               people(from / 1e6))
                 : "at any bandwidth"));
  }
}

}  // namespace

void fill_tiers(PageSection& section, const ReportJson& json) {
  const ReportJson& rows = member(json, "rows");
  PageTable table{fmt::format("Into {}, {} images, batches of {}", device_of(json),
                              people(number(json, "images")), people(number(json, "batch_size"))),
                  {"tier", "cache", "data", "by", "samples/s", "GB/s", "of the limit", "bytes/sample",
                   "cores", "x decode"},
                  4,
                  {}};
  PageChart chart{"Samples a second by storage tier", "samples/s", {"JPEG, decoded on the fly"}, {}};
  std::vector<std::string> unsteady;
  std::map<std::string, bool> limits;
  double most = 0;
  std::string best;
  for (const ReportJson& row : rows) {
    const bool decodes = yes(row, "decodes");
    const bool emulated = yes(row, "emulated");
    const std::string data = decodes ? "JPEG" : word(row, "dataset");
    const std::string name = word(row, "tier");
    const std::string tier = name.substr(0, name.find(" (emulated)"));
    const std::string by = word(row, "contender");
    const double rate = number(row, "samples_per_second");
    if (!(rate > 0)) {
      const std::string problem = word(row, "problem");
      table.rows.push_back(
          {{tier, cache_of(row), data, by}, problem.empty() ? "not measured" : problem, emulated});
      continue;
    }
    const double limit = number(row, "limit_samples_per_second");
    const double times = number(row, "speed_up_over_decoding");
    table.rows.push_back(
        {{tier, cache_of(row), data, by, people(rate), people(number(row, "bytes_per_second") / 1e9),
          limit > 0 ? percent(rate / limit) : "not known", people(number(row, "bytes_per_sample")),
          people(number(row, "cores")), decodes ? "-" : people(times)},
         "",
         emulated});
    if (limit > 0)
      limits[fmt::format("Limit of {}, {}: {}.", decodes ? "decoding" : by, cache_of(row),
                         word(row, "limit_is"))] = true;
    unsigned group = 0;
    if (!decodes) {
      const auto at = std::find(chart.groups.begin() + 1, chart.groups.end(), data);
      group = static_cast<unsigned>(at - chart.groups.begin());
      if (at == chart.groups.end()) chart.groups.push_back(data);
    }
    chart.bars.push_back({fmt::format("{}{}: {}{}", tier, emulated ? "" : ", " + cache_of(row), by,
                                      decodes ? "" : ", " + data),
                          rate, limit > 0 ? limit : 0, group, emulated});
    const Range range = range_of(member(row, "samples"), "samples_per_second");
    if (range.unsteady()) unsteady.push_back(fmt::format("{}, {}: {} of {}", tier, cache_of(row), by, data));
    if (!decodes && !emulated && times > most) {
      most = times;
      best = fmt::format("{} of {} on {} ({}), {} samples/s", by, data, tier, cache_of(row), people(rate));
    }
  }
  if (!best.empty())
    section.says = fmt::format("At most {} times what decoding on the fly gives from the same tier: {}.",
                               people(most), best);
  section.charts.push_back(chart);
  section.tables.push_back(table);
  note_break_even(section, rows);
  if (std::any_of(rows.begin(), rows.end(),
                  [](const ReportJson& row) { return number(row, "share_of_limit") > kBeyond; }))
    section.notes.emplace_back(kWhyBeyond);
  for (const auto& [limit, there] : limits) section.notes.push_back(limit);
  for (const ReportJson& tier : member(json, "tiers")) {
    const std::string emulated = word(tier, "emulated");
    section.notes.push_back(emulated.empty()
                                ? fmt::format("{}: {} ({} on {})", word(tier, "name"), word(tier, "path"),
                                              word(tier, "filesystem"), word(tier, "source"))
                                : fmt::format("{}: {}; real reads, held back", word(tier, "name"), emulated));
  }
  note_unsteady(section, unsteady);
}

void fill_pipeline(PageSection& section, const ReportJson& json) {
  const double limit = number(json, "limit_samples_per_second");
  PageTable table{
      fmt::format("Batches of {} on {}, means", people(number(json, "batch_size")), device_of(json)),
      {"pipeline", "samples/s", "of the limit", "x the first", "device busy", "Load, ms", "Transfer, ms",
       "Train, ms", "Total, ms"},
      1,
      {}};
  PageChart chart{"What each part brings", "samples/s", {"decoding on the fly", "precomputed"}, {}};
  for (const ReportJson& one : member(json, "cases")) {
    const std::string name = word(one, "name");
    const double rate = number(one, "samples_per_second");
    if (!(rate > 0) || !word(one, "problem").empty()) {
      table.rows.push_back({{name}, word(one, "problem"), false});
      continue;
    }
    const auto mean = [&](const char* field) {
      double sum = 0;
      double count = 0;
      for (const ReportJson& run : member(one, "runs"))
        for (const ReportJson& batch : run) {
          sum += number(batch, field);
          ++count;
        }
      return people(sum / count);
    };
    table.rows.push_back({{name, people(rate), percent(rate / limit), people(number(one, "speed_up")),
                           percent(number(one, "device_busy")), mean("load_ms"), mean("transfer_ms"),
                           mean("train_ms"), mean("total_ms")},
                          "",
                          false});
    chart.bars.push_back({name, rate, limit, name == "precomputed shards" ? 1U : 0U, false});
    section.notes.push_back(name + ": " + word(one, "how"));
    section.says = fmt::format(
        "With {} the training step gets {} times the samples of the first pipeline; the device is busy {} of "
        "the time.",
        name, people(number(one, "speed_up")), percent(number(one, "device_busy")));
  }
  section.charts.push_back(chart);
  section.tables.push_back(table);
  const ReportJson& step = member(json, "step");
  section.notes.push_back(
      fmt::format("Limit: {} samples/s, the training step alone ({} ms a batch: {} products of {}x{}, {}).",
                  people(limit), people(number(step, "ms")), people(number(step, "times")),
                  people(number(step, "size")), people(number(step, "size")), word(step, "arithmetic")));
  if (word(json, "device") == "host")
    section.notes.emplace_back(
        "On the host the step and the decoding share the cores: a step that has to wait for them counts as "
        "busy.");
}

void fill_load(PageSection& section, const ReportJson& json) {
  const Range rate = range_of(member(json, "samples"), "bytes_per_second");
  const Range samples = range_of(member(json, "samples"), "samples_per_second");
  const Range cores = range_of(member(json, "samples"), "cores");
  const double limit = number(json, "limit_bytes_per_second");
  PageTable table{fmt::format("Batches of {} to {}, transport {}", people(number(json, "batch_size")),
                              device_of(json), word(json, "transport")),
                  {"what", "value"},
                  1,
                  {}};
  const auto row = [&](const char* name, const std::string& value) {
    table.rows.push_back({{name, value}, "", false});
  };
  if (rate.known) {
    section.says = fmt::format("The loader brings {} samples/s, {} of its limit.", people(samples.median),
                               percent(rate.median / limit));
    row("samples/s", people(samples.median));
    row("GB/s of stored samples", people(rate.median / 1e9));
    row("lowest to highest", people(rate.lowest / 1e9) + " to " + people(rate.highest / 1e9));
    row("limit, GB/s", people(limit / 1e9));
    row("of the limit", percent(rate.median / limit));
    row("cores", people(cores.median));
    section.charts.push_back(
        {"Stored samples", "GB/s", {}, {{"loader", rate.median / 1e9, limit / 1e9, 0, false}}});
  }
  row("opened in, ms", people(1e3 * number(json, "open_seconds")));
  row("first batch after, ms", people(1e3 * number(json, "first_batch_seconds")));
  row("registered", bytes_text(number(json, "registered_bytes")));
  row("pinned", bytes_text(number(json, "pinned_bytes")));
  row("on the device", bytes_text(number(json, "device_bytes")));
  section.tables.push_back(table);
  section.notes.push_back("Limit: " + word(json, "limit_is") + ".");
  if (rate.known && rate.median > kBeyond * limit) section.notes.emplace_back(kWhyBeyond);
  section.notes.push_back("Transport: " + word(json, "reason") + ".");
  if (rate.unsteady()) note_unsteady(section, {"load"});
}

}  // namespace shard::bench
