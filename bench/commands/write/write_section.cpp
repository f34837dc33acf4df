#include <algorithm>

#include "report/section.hpp"
#include "sections.hpp"

namespace shard::bench {
namespace {

void fill_write(PageSection& section, const ReportJson& json) {
  const double disk = range_of(member(json, "disk_bytes_per_second")).median;
  const double memory = range_of(member(json, "memory_bytes_per_second")).median;
  PageTable table{
      fmt::format("{}: {} in files of {}, writes of {}", word(json, "path"), bytes_text(json, "size_bytes"),
                  bytes_text(json, "shard_bytes"), bytes_text(json, "block_bytes")),
      {"way", "its limit", "written, GB/s", "of its limit", "with fsync, GB/s", "of the disk", "lowest",
       "highest"},
      2};
  PageChart chart{"Ways to write shards", "GB/s", {"with fsync", "without"}};
  std::vector<std::pair<std::string, Stats>> ways;
  for (const ReportJson& one : member(json, "cases")) {
    const std::string name = word(one, "method");
    const Stats durable = range_of(member(one, "samples"), "durable_bytes_per_second");
    if (!durable.known()) {
      table.leave_out({name}, word(one, "problem"));
      continue;
    }
    const bool direct = name.find("DIRECT") != std::string::npos;
    const double written = number(one, "written_bytes_per_second");
    const double limit = direct ? disk : memory;
    table.add({name, direct ? "disk" : "page cache", gbs(written), limit > 0 ? percent(written / limit) : "-",
               gbs(durable.median), disk > 0 ? percent(durable.median / disk) : "-", gbs(durable.min),
               gbs(durable.max)});
    chart.bars.push_back({name, durable.median / 1e9, disk / 1e9});
    chart.bars.push_back({name, written / 1e9, limit / 1e9, 1});
    if (durable.unsteady()) section.unsteady.push_back(name);
    ways.emplace_back(name, durable);
  }
  const auto best = std::max_element(ways.begin(), ways.end(), [](const auto& a, const auto& b) {
    return a.second.median < b.second.median;
  });
  if (best != ways.end()) {
    section.says = fmt::format(
        "Fastest durable way: {}, {} GB/s with fsync{}", best->first, gbs(best->second.median),
        disk > 0 ? fmt::format(", {} of what the disk takes", percent(best->second.median / disk)) : "");
    std::vector<std::string> close;
    for (auto way = ways.begin(); way != ways.end(); ++way)
      if (way != best && way->second.max >= best->second.min) close.push_back(way->first);
    section.says +=
        close.empty() ? "." : fmt::format("; these runs do not tell it apart from: {}.", joined(close, ", "));
  }
  section.charts.push_back(chart);
  section.tables.push_back(table);
  section.notes.push_back(
      disk > 0 ? fmt::format(
                     "Limit of the disk: {} GB/s, written over past the page cache by 8 threads, with fsync.",
                     gbs(disk))
               : "Limit of the disk: not known, this filesystem has no O_DIRECT.");
  section.notes.push_back(
      fmt::format("Limit of the page cache: {} GB/s, one thread that copies memory.", gbs(memory)));
}

}  // namespace

PageSection write_section(const ReportJson& json) {
  return section_of("write", "Writing shards", json, fill_write);
}

}  // namespace shard::bench
