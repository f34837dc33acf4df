#include <algorithm>

#include "report/section.hpp"
#include "sections.hpp"

namespace shard::bench {
namespace {

constexpr double kNoted = 0.01;

void fill_memory(PageSection& section, const ReportJson& json) {
  PageTable table{
      fmt::format("{} samples of {}, codec {}, on {}, {} batches ahead", people(json, "samples"),
                  bytes_text(json, "sample_bytes"), word(json, "codec"), device_of(json),
                  people(json, "prefetch")),
      {"batch", "memory", "limit is", "predicted", "measured", "differs", "limit", "of the limit"},
      3};
  PageChart chart{"Memory of the loader", "MB", {"predicted", "measured"}};
  double most = 0;
  std::string last;
  for (const ReportJson& one : member(json, "cases")) {
    const std::string batch = people(one, "batch_size");
    if (!word(one, "problem").empty()) {
      table.leave_out({"batch " + batch}, word(one, "problem"));
      continue;
    }
    const std::string reason = word(one, "reason");
    if (reason != last)
      section.notes.push_back(fmt::format("transport {} ({})", word(one, "transport"), reason));
    last = reason;
    for (const auto& [kind, row] : member(one, "memory").items()) {
      const double predicted = number(row, "predicted_bytes");
      const double measured = number(row, "measured_bytes");
      const double apart = number(row, "difference");
      table.add({batch, kind, word(row, "limit_is"), bytes_text(predicted), bytes_text(measured),
                 percent(apart), bytes_text(row, "limit_bytes"),
                 percent(measured / number(row, "limit_bytes"))});
      const std::string label = fmt::format("batches of {}: {}", batch, kind);
      chart.bars.push_back({label, predicted / 1e6});
      chart.bars.push_back({label, measured / 1e6, 0, 1});
      if (kind == "device" || kind == "pinned" || kind == "registered") most = std::max(most, apart);
      if (apart > kNoted)
        section.notes.push_back(fmt::format("batch {}, {}: {} bytes predicted, {} measured", batch, kind,
                                            people(predicted), people(measured)));
    }
  }
  section.says =
      fmt::format("The memory of a loader with {} batches ahead: prediction and count differ by at most {}.",
                  people(json, "prefetch"), percent(most));
  section.tables.push_back(table);
  section.charts.push_back(chart);
  section.notes.emplace_back(
      "The rows process and GPU's own account contain more than the loader: thread stacks, the driver's "
      "blocks of "
      "2 MiB, parameters of transforms, other programs. Pages that were never written are not counted.");
}

}  // namespace

PageSection memory_section(const ReportJson& json) {
  return section_of("memory", "Memory of the loader", json, fill_memory);
}

}  // namespace shard::bench
