#include <algorithm>

#include "cli/text.hpp"
#include "report/section.hpp"
#include "sections.hpp"

namespace shard::bench {
namespace {

// Thread time of the workers in the run of median time; what none of the stages covers is the start, the end
// and the time between.
PageTable stages_of(const ReportJson& one, double images) {
  const double jobs = number(one, "jobs");
  PageTable table{"Stages on " + cli::counted(static_cast<std::uint64_t>(jobs), "thread"),
                  {"stage", "ms per image", "of thread time"}};
  std::vector<const ReportJson*> runs;
  for (const ReportJson& run : member(member(one, "convert"), "runs")) runs.push_back(&run);
  if (runs.empty()) return table;
  std::sort(runs.begin(), runs.end(),
            [](const auto* a, const auto* b) { return number(*a, "seconds") < number(*b, "seconds"); });
  const ReportJson& run = *runs[runs.size() / 2];
  const ReportJson& stages = member(run, "stage_thread_seconds");
  const double all = number(run, "seconds") * jobs;
  double rest = all;
  const auto row = [&](const char* name, double seconds) {
    table.add({name, people(1e3 * seconds / images), percent(seconds / all)});
  };
  for (const auto& [name, key] :
       {std::pair{"read", "read"}, std::pair{"decode and resize", "preprocess"},
        std::pair{"hash and write", "store"}, std::pair{"wait for a publish", "wait"}}) {
    row(name, number(stages, key));
    rest -= number(stages, key);
  }
  row("other: scan, idle at the end", std::max(0.0, rest));
  row("publish (own thread)", number(stages, "publish"));
  const double decode = number(member(member(one, "decode"), "images_per_second"), "median");
  table.add({"for comparison: pure decode", people(1e3 * jobs / decode), "-"});
  return table;
}

void fill_convert(PageSection& section, const ReportJson& json) {
  const ReportJson& input = member(json, "input");
  const double images = number(input, "images");
  PageTable table{
      fmt::format(
          "{} images ({} distinct), mean {} kB, {} pixels, {} bits/pixel; preset {}; {} samples equal to the "
          "reference, first shard verified",
          people(images), people(input, "distinct"), people(number(input, "bytes") / images / 1e3),
          people(std::round(number(input, "pixels") / images)),
          people(8 * number(input, "bytes") / number(input, "pixels")), word(json, "preset"),
          people(json, "checked_samples")),
      {"threads", "decode, images/s", "convert, images/s", "convert/decode", "lowest", "highest",
       "by CPU time", "written, MB/s"},
      0};
  PageChart chart{"Conversion beside its limit", "images/s"};
  PageTable stages;
  for (const ReportJson& one : member(json, "cases")) {
    const auto rate = [&](const char* name) {
      return number(member(member(one, name), "images_per_second"), "median");
    };
    const ReportJson& ratio = member(one, "ratio");
    const double jobs = number(one, "jobs");
    table.add({people(jobs), people(rate("decode")), people(rate("convert")), people(ratio, "median"),
               people(ratio, "min"), people(ratio, "max"), percent(member(one, "cpu_ratio"), "median"),
               people(member(one, "output_mb_per_second"), "median")});
    const std::string threads = jobs == 1 ? "1 thread" : people(jobs) + " threads";
    chart.bars.push_back({"conversion, " + threads, rate("convert"), rate("decode")});
    section.says = fmt::format("shardify converts {} images/s on {}, {} of the rate of decoding alone.",
                               people(rate("convert")), threads, percent(ratio, "median"));
    stages = stages_of(one, images);
  }
  section.charts.push_back(chart);
  section.tables = {table, stages};
  section.notes.emplace_back(
      "Limit: libjpeg-turbo decodes the same files from memory on the same threads, in turn, and nothing "
      "else.");
  const ReportJson& scaling = member(json, "scaling");
  if (scaling.is_object())
    section.notes.push_back(fmt::format("{} threads over 1: convert {} times, decode {} times.",
                                        people(scaling, "jobs"), people(scaling, "convert"),
                                        people(scaling, "decode")));
  for (const ReportJson& warning : member(json, "warnings"))
    if (warning.is_string()) section.notes.push_back("warning: " + warning.get<std::string>());
}

}  // namespace

PageSection convert_section(const ReportJson& json) {
  return section_of("convert", "Converting images", json, fill_convert);
}

}  // namespace shard::bench
