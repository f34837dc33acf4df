#include <algorithm>

#include "report/section.hpp"
#include "sections.hpp"

namespace shard::bench {
namespace {

void fill_transform(PageSection& section, const ReportJson& json) {
  const double memory = range_of(member(json, "memory_bytes_per_second")).median;
  const double limit = memory / (number(json, "stored_bytes") + number(json, "delivered_bytes"));
  PageTable table{
      fmt::format("u8 {0}x{0} to {1}x{1} {2}, batches of {3}, on {4}", people(json, "side"),
                  people(json, "size"), word(json, "dtype"), people(json, "batch_size"), device_of(json)),
      {"operations", "samples/s", "of no operation", "of the memory's limit", "drawn/s", "lowest",
       "highest"}};
  PageChart chart{"Operations of augmentation", "samples/s"};
  double none = 0;
  double slowest = 0;
  std::string slowest_name;
  for (const ReportJson& one : member(json, "cases")) {
    const std::string name = word(one, "name");
    const Stats rate = range_of(member(one, "samples_per_second"));
    if (!rate.known()) {
      table.leave_out({name}, word(one, "problem"));
      continue;
    }
    if (none == 0) none = rate.median;
    table.add({name, people(rate.median), percent(rate.median / none), percent(rate.median / limit),
               people(one, "draws_per_second"), people(rate.min), people(rate.max)});
    chart.bars.push_back({name, rate.median, limit});
    if (rate.unsteady()) section.unsteady.push_back(name);
    if (slowest == 0 || rate.median < slowest) {
      slowest = rate.median;
      slowest_name = name;
    }
  }
  section.says = fmt::format("Without an operation {} samples/s; the slowest case, {}, {} samples/s.",
                             people(none), slowest_name, people(slowest));
  section.tables.push_back(table);
  section.charts.push_back(chart);
  section.notes.push_back(fmt::format(
      "Limit of the memory: {} GB/s read and written by copies of samples, {} samples/s. Drawn: what "
      "one thread of the host draws.",
      gbs(memory), people(limit)));
}

}  // namespace

PageSection transform_section(const ReportJson& json) {
  return section_of("transform", "Augmentation", json, fill_transform);
}

}  // namespace shard::bench
