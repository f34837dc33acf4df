#include "report/section.hpp"
#include "sections.hpp"

namespace shard::bench {
namespace {

void fill_load(PageSection& section, const ReportJson& json) {
  const Stats rate = range_of(member(json, "samples"), "bytes_per_second");
  const Stats samples = range_of(member(json, "samples"), "samples_per_second");
  const double limit = number(json, "limit_bytes_per_second");
  const double random = number(json, "random_bytes_per_second");
  const double devices = number(json, "devices");
  const std::string transport = word(json, "transport");
  PageTable table{fmt::format("Batches of {} to {}{}, transport {}", people(json, "batch_size"),
                              device_of(json), devices > 1 ? " x " + people(devices) : "", transport),
                  {"what", "value"}};
  // With a codec: frames are what the limit carries, if it says so.
  const double frame = number(json, "stored_sample_bytes");
  const double frame_limit = number(json, "limit_stored_bytes_per_second");
  const bool by_frames = frame > 0 && frame_limit > 0;
  PageChart chart{"The loader beside its limit",
                  by_frames ? "GB/s of stored bytes" : "GB/s of stored samples"};
  double share = rate.median / limit;
  if (by_frames) share = samples.median * frame / frame_limit;
  if (rate.known()) {
    section.says = fmt::format("The loader delivers {} samples/s, {} of its limit.",
                               people(std::round(samples.median)), percent(share));
    table.add({"samples/s", people(std::round(samples.median))});
    if (frame > 0) {
      table.add({"bytes/sample, stored", people(std::round(frame))});
      table.add({"bytes/sample, decoded", people(json, "sample_bytes")});
      table.add({"GB/s of stored bytes", gbs(samples.median * frame)});
    }
    if (by_frames) {
      table.add({"limit, GB/s of stored bytes", gbs(frame_limit)});
      table.add({"of the limit, by stored bytes", percent(share)});
    }
    table.add({frame > 0 ? "GB/s of decoded samples" : "GB/s of stored samples", gbs(rate.median)});
    table.add({"lowest to highest", gbs(rate.min) + " to " + gbs(rate.max)});
    table.add({"limit, GB/s", gbs(limit)});
    table.add(
        {frame > 0 ? "of the limit, by decoded samples" : "of the limit", percent(rate.median / limit)});
    table.add({"cores", people(range_of(member(json, "samples"), "cores").median)});
    if (by_frames)
      chart.bars.push_back({"loader, " + transport, samples.median * frame / 1e9, frame_limit / 1e9});
    else
      chart.bars.push_back({"loader, " + transport, rate.median / 1e9, limit / 1e9});
    if (random > 0) {
      table.add({"the disk as the loader reads it, GB/s", gbs(random)});
      table.add({"of that", percent(by_frames ? samples.median * frame / random : rate.median / random)});
      chart.bars.push_back({"disk, as the loader reads", random / 1e9});
      section.notes.push_back("The disk as the loader reads it: " + word(json, "random_is") + ".");
    }
    std::size_t epoch = 0;
    for (const ReportJson& one : member(json, "first_epochs_samples_per_second"))
      table.add({fmt::format("epoch {}, samples/s", epoch++), people(std::round(one.get<double>()))});
    if (const double first = number(json, "first_seconds_samples_per_second"); first > 0)
      table.add(
          {fmt::format("first {} s, samples/s", number(json, "first_seconds")), people(std::round(first))});
    section.charts.push_back(chart);
  }
  table.add({"opened in, ms", people(1e3 * number(json, "open_seconds"))});
  table.add({"first batch after, ms", people(1e3 * number(json, "first_batch_seconds"))});
  table.add({"registered", bytes_text(json, "registered_bytes")});
  table.add({"pinned", bytes_text(json, "pinned_bytes")});
  table.add({"on the device", bytes_text(json, "device_bytes")});
  section.tables.push_back(table);
  section.notes.push_back("Limit: " + word(json, "limit_is") + ".");
  if (rate.known() && share > kBeyondLimit) section.notes.emplace_back(kWhyBeyondLimit);
  section.notes.push_back("Transport: " + word(json, "reason") + ".");
  if (rate.unsteady()) section.unsteady.emplace_back("load");
}

}  // namespace

PageSection load_section(const ReportJson& json) { return section_of("load", "The loader", json, fill_load); }

}  // namespace shard::bench
