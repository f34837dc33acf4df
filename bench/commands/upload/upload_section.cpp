#include "report/section.hpp"
#include "sections.hpp"

namespace shard::bench {
namespace {

void add_batches(PageSection& section, const ReportJson& json, double limit) {
  const double step_ms = number(json, "step_ms");
  const bool step = std::isfinite(step_ms);
  PageTable table{fmt::format("Batches of samples of {} bytes, one batched copy, nothing else under way",
                              people(json, "sample_bytes")),
                  {"samples per batch", "upload, ms", "of the limit"},
                  0};
  if (step) {
    table.head.push_back(fmt::format("of a step of {} ms", people(step_ms)));
    table.head.emplace_back("when beside it");
  }
  for (const ReportJson& one : member(json, "batches")) {
    const double seconds = number(one, "seconds");
    const double bytes = number(one, "batch_size") * number(json, "sample_bytes");
    table.add({people(one, "batch_size"), people(1e3 * seconds), percent(bytes / seconds / limit)});
    if (!step) continue;
    table.rows.back().cells.push_back(percent(one, "share_of_step"));
    table.rows.back().cells.push_back(percent(one, "share_beside_step"));
  }
  section.tables.push_back(table);
}

void fill_upload(PageSection& section, const ReportJson& json) {
  const double limit = range_of(member(json, "limit_bytes_per_second")).median;
  const double link = number(json, "link_bytes_per_second");
  const bool host = word(json, "device") == "host";
  PageTable table{"Copies by size", {"chunk", "host memory", "GB/s", "of the limit", "lowest", "highest"}, 2};
  PageChart chart{"The link to the device", "GB/s"};
  for (const ReportJson& one : member(json, "cases")) {
    const std::string chunk = bytes_text(one, "chunk_bytes");
    const std::string name = word(one, "name");
    const Stats rate = range_of(member(one, "samples_bytes_per_second"));
    if (!rate.known()) {
      table.leave_out({chunk, name}, word(one, "problem"));
      continue;
    }
    table.add({chunk, name, gbs(rate.median), percent(rate.median / limit), gbs(rate.min), gbs(rate.max)});
    if (rate.unsteady()) section.unsteady.push_back(chunk + " " + name);
    chart.bars.push_back(
        {chunk + ", " + name, rate.median / 1e9, limit / 1e9, chart.group(name.substr(0, name.find(',')))});
  }
  section.says =
      fmt::format("Pinned memory in the largest blocks gives {} GB/s to {}.", gbs(limit),
                  host ? "the host: there is no link, every row is a copy in memory" : device_of(json));
  section.charts.push_back(chart);
  section.tables.push_back(table);
  if (!member(json, "batches").empty()) add_batches(section, json, limit);
  section.notes.push_back(
      fmt::format("Limit: {} GB/s, pinned memory to one device in the largest blocks{}.", gbs(limit),
                  link > 0 ? fmt::format("; the link itself can carry {}", gbs(link)) : ""));
}

}  // namespace

PageSection upload_section(const ReportJson& json) {
  return section_of("upload", "The link to the device", json, fill_upload);
}

}  // namespace shard::bench
