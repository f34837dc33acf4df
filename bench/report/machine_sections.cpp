// The sections that need no images: the machine and its limits.
#include <algorithm>

#include "report/sections.hpp"

namespace shard::bench {
namespace {

std::string gbs(double bytes_per_second) { return people(bytes_per_second / 1e9); }
std::string limit_text(const ReportJson& bytes) {
  return bytes.is_number() ? bytes_text(bytes.get<double>()) : std::string("no limit");
}

std::string on_device(const ReportJson& json) {
  const std::string device = word(json, "device");
  return device == "host" ? "the host, whose rows are copies in memory" : device;
}

void add_gpu(PageTable& table, const ReportJson& gpu) {
  table.rows.push_back(
      {{fmt::format("GPU {}", people(number(gpu, "ordinal"))),
        fmt::format("{}, {} ({} free), compute capability {}, {} multiprocessors", word(gpu, "name"),
                    bytes_text(number(gpu, "memory_bytes")), bytes_text(number(gpu, "free_bytes")),
                    word(gpu, "compute_capability"), people(number(gpu, "multiprocessors")))},
       "",
       false});
  const auto link = [](const ReportJson& one) {
    return fmt::format("PCIe {} x{} ({} GB/s)", people(number(one, "generation")),
                       people(number(one, "width")), gbs(number(one, "bytes_per_second")));
  };
  table.rows.push_back(
      {{"link", link(member(gpu, "link")) + " now, " + link(member(gpu, "link_at_most")) + " at most"},
       "",
       false});
  const std::string registration = word(gpu, "registration");
  table.rows.push_back(
      {{"register shards in place", registration == "works" ? "works" : "no: " + registration}, "", false});
  table.rows.push_back({{"batched copies", yes(gpu, "batched_copy") ? "yes" : "no"}, "", false});
}

}  // namespace

void fill_device(PageSection& section, const ReportJson& json) {
  section.says = "What this machine has, and what the loader can use of it.";
  PageTable table{"The machine", {"what", "is"}, 2, {}};
  const auto row = [&](const std::string& name, const std::string& is) {
    table.rows.push_back({{name, is}, "", false});
  };
  const ReportJson& cuda = member(json, "cuda");
  const std::string absent = word(cuda, "absent");
  for (const ReportJson& gpu : member(cuda, "devices")) add_gpu(table, gpu);
  if (member(cuda, "devices").empty())
    row("GPU", "none can be used: " + (absent.empty() ? std::string("not looked at") : absent));
  else
    row("CUDA", fmt::format("driver {}, runtime {}{}", word(cuda, "driver"), word(cuda, "runtime"),
                            absent.empty() ? "" : "; left out: " + absent));
  const ReportJson& cpu = member(json, "cpu");
  std::string caches;
  for (const ReportJson& cache : member(cpu, "caches"))
    caches += fmt::format("{}L{} {} {}", caches.empty() ? "" : ", ", people(number(cache, "level")),
                          word(cache, "type"), bytes_text(number(cache, "size_bytes")));
  row("vectors", word(cpu, "simd"));
  row("caches", caches.empty() ? "not known" : caches);
  const ReportJson& memory = member(json, "memory");
  row("memory available", bytes_text(number(memory, "available_bytes")) +
                              "; cgroup: " + limit_text(member(memory, "cgroup_available_bytes")));
  row("locked by mlock", limit_text(member(memory, "memlock_soft_bytes")));
  row("registered shards", bytes_text(number(memory, "registered_budget_bytes")) + " at most by default");
  section.tables.push_back(table);
  PageTable disks{"Filesystems", {"path", "filesystem", "disk", "O_DIRECT", "free", "size"}, 4, {}};
  for (const ReportJson& one : member(json, "filesystems")) {
    const ReportJson& rotational = member(one, "rotational");
    if (!word(one, "problem").empty())
      disks.rows.push_back({{word(one, "path")}, word(one, "problem"), false});
    else
      disks.rows.push_back({{word(one, "path"), word(one, "type") + " on " + word(one, "source"),
                             !rotational.is_boolean() ? "not described"
                             : rotational.get<bool>() ? "rotational"
                                                      : "not rotational",
                             word(one, "direct"), bytes_text(number(one, "free_bytes")),
                             bytes_text(number(one, "size_bytes"))},
                            "",
                            false});
  }
  section.tables.push_back(disks);
}

void fill_upload(PageSection& section, const ReportJson& json) {
  const double limit = range_of(member(json, "limit_bytes_per_second")).median;
  const double link = number(json, "link_bytes_per_second");
  PageTable table{
      "Copies by size", {"chunk", "host memory", "GB/s", "of the limit", "lowest", "highest"}, 2, {}};
  PageChart chart{"The fastest of each kind", "GB/s", {}, {}};
  std::vector<std::string> unsteady;
  for (const ReportJson& one : member(json, "cases")) {
    const std::string chunk = bytes_text(number(one, "chunk_bytes"));
    const std::string name = word(one, "name");
    const Range rate = range_of(member(one, "samples_bytes_per_second"));
    if (!rate.known) {
      table.rows.push_back({{chunk, name}, word(one, "problem"), false});
      continue;
    }
    table.rows.push_back(
        {{chunk, name, gbs(rate.median), percent(rate.median / limit), gbs(rate.lowest), gbs(rate.highest)},
         "",
         false});
    if (rate.unsteady()) unsteady.push_back(chunk + " " + name);
    const auto at = std::find_if(chart.bars.begin(), chart.bars.end(),
                                 [&](const PageBar& bar) { return bar.label == name; });
    if (at == chart.bars.end())
      chart.bars.push_back({name, rate.median / 1e9, limit / 1e9, 0, false});
    else
      at->value = std::max(at->value, rate.median / 1e9);
  }
  section.says =
      fmt::format("Pinned memory in the largest blocks brings {} GB/s to {}.", gbs(limit), on_device(json));
  section.charts.push_back(chart);
  section.tables.push_back(table);
  const bool step = std::isfinite(number(json, "step_ms"));
  PageTable batches{fmt::format("Batches of samples of {} bytes, nothing else under way",
                                people(number(json, "sample_bytes"))),
                    {"samples a batch", "upload, ms", "of the limit"},
                    0,
                    {}};
  if (step) batches.head.push_back(fmt::format("of a step of {} ms", people(number(json, "step_ms"))));
  for (const ReportJson& one : member(json, "batches")) {
    const double seconds = number(one, "seconds");
    const double bytes = number(one, "batch_size") * number(json, "sample_bytes");
    PageRow row{{people(number(one, "batch_size")), people(1e3 * seconds), percent(bytes / seconds / limit)},
                "",
                false};
    if (step) row.cells.push_back(percent(number(one, "share_of_step")));
    batches.rows.push_back(row);
  }
  section.tables.push_back(batches);
  section.notes.push_back(fmt::format("Limit: {} GB/s, pinned memory to one device in the largest blocks{}.",
                                      gbs(limit),
                                      link > 0 ? fmt::format("; the link is made for {}", gbs(link)) : ""));
  note_unsteady(section, unsteady);
}

void fill_memory(PageSection& section, const ReportJson& json) {
  PageTable table{
      fmt::format("Memory for {} samples of {}", people(number(json, "samples")),
                  bytes_text(number(json, "sample_bytes"))),
      {"batch", "memory", "limit is", "predicted", "measured", "differs", "limit", "of the limit"},
      3,
      {}};
  double most = 0;
  for (const ReportJson& one : member(json, "cases")) {
    const std::string batch = people(number(one, "batch_size"));
    if (!word(one, "problem").empty()) table.rows.push_back({{batch}, word(one, "problem"), false});
    for (const auto& [kind, row] : member(one, "memory").items()) {
      const double measured = number(row, "measured_bytes");
      table.rows.push_back(
          {{batch, kind, word(row, "limit_is"), bytes_text(number(row, "predicted_bytes")),
            bytes_text(measured), percent(number(row, "difference")), bytes_text(number(row, "limit_bytes")),
            percent(measured / number(row, "limit_bytes"))},
           "",
           false});
      if (kind == "device" || kind == "pinned" || kind == "registered")
        most = std::max(most, number(row, "difference"));
    }
  }
  section.says = fmt::format(
      "What a loader takes with {} batches ahead: what its formula predicts is at most {} from what it "
      "counts.",
      people(number(json, "prefetch")), percent(most));
  section.tables.push_back(table);
  section.notes.emplace_back(
      "The account of the process or of the GPU holds more than the loader: stacks, the driver's blocks, "
      "other "
      "programs.");
}

void fill_write(PageSection& section, const ReportJson& json) {
  const double disk = range_of(member(json, "disk_bytes_per_second")).median;
  const double memory = range_of(member(json, "memory_bytes_per_second")).median;
  PageTable table{
      fmt::format("{} in files of {}, writes of {}", bytes_text(number(json, "size_bytes")),
                  bytes_text(number(json, "shard_bytes")), bytes_text(number(json, "block_bytes"))),
      {"way", "its limit", "written, GB/s", "of its limit", "with fsync, GB/s", "of the disk", "lowest",
       "highest"},
      2,
      {}};
  PageChart chart{"With fsync", "GB/s", {}, {}};
  std::vector<std::string> unsteady;
  std::string best;
  double most = 0;
  for (const ReportJson& one : member(json, "cases")) {
    const std::string name = word(one, "method");
    const Range durable = range_of(member(one, "samples"), "durable_bytes_per_second");
    if (!durable.known) {
      table.rows.push_back({{name}, word(one, "problem"), false});
      continue;
    }
    const bool direct = name.find("direct") != std::string::npos || name.find("DIRECT") != std::string::npos;
    const double written = number(one, "written_bytes_per_second");
    const double limit = direct ? disk : memory;
    table.rows.push_back(
        {{name, direct ? "disk" : "page cache", gbs(written), limit > 0 ? percent(written / limit) : "-",
          gbs(durable.median), disk > 0 ? percent(durable.median / disk) : "-", gbs(durable.lowest),
          gbs(durable.highest)},
         "",
         false});
    chart.bars.push_back({name, durable.median / 1e9, disk / 1e9, 0, false});
    if (durable.unsteady()) unsteady.push_back(name);
    if (durable.median > most) best = name;
    most = std::max(most, durable.median);
  }
  if (!best.empty())
    section.says =
        fmt::format("Fastest way here that has reached the disk: {}, {} GB/s with fsync.", best, gbs(most));
  section.charts.push_back(chart);
  section.tables.push_back(table);
  section.notes.push_back(disk > 0
                              ? fmt::format("Limit of the disk: {} GB/s, written over past the page cache by "
                                            "8 threads, with fsync.",
                                            gbs(disk))
                              : "Limit of the disk: not known, this filesystem has no O_DIRECT.");
  section.notes.push_back(
      fmt::format("Limit of the page cache: {} GB/s, one thread that copies memory.", gbs(memory)));
  note_unsteady(section, unsteady);
}

void fill_matmul(PageSection& section, const ReportJson& json) {
  PageTable table{"Products of square matrices",
                  {"size", "on", "GFLOP/s", "limit", "of the limit", "upload, ms", "product, ms",
                   "download, ms", "in all, ms", "error", "at most"},
                  2,
                  {}};
  PageChart chart{"Each at its best size", "GFLOP/s", {"CPU", "GPU"}, {}};
  std::vector<std::string> unsteady;
  for (const ReportJson& one : member(json, "cases")) {
    const std::string size = people(number(one, "size"));
    const std::string name = word(one, "name");
    const Range rate = range_of(member(one, "samples"), "flops_per_second");
    if (!rate.known) {
      table.rows.push_back({{size, name}, word(one, "problem"), false});
      continue;
    }
    const double limit = number(one, "limit_flops_per_second");
    const bool gpu = yes(one, "on_gpu");
    const auto ms = [&](const char* field) {
      return people(1e3 * range_of(member(one, "samples"), field).median);
    };
    table.rows.push_back(
        {{size, name, people(rate.median / 1e9), limit > 0 ? people(limit / 1e9) : "-",
          limit > 0 ? percent(rate.median / limit) : "-", gpu ? ms("upload_seconds") : "-",
          ms("multiply_seconds"), gpu ? ms("download_seconds") : "-",
          people(1e3 * number(one, "whole_seconds")), fmt::format("{:.1e}", number(one, "error")),
          fmt::format("{:.1e}", number(one, "error_bound"))},
         "",
         false});
    if (rate.unsteady()) unsteady.push_back(name + " " + size);
    const auto at = std::find_if(chart.bars.begin(), chart.bars.end(),
                                 [&](const PageBar& bar) { return bar.label == name; });
    if (at == chart.bars.end()) {
      chart.bars.push_back({name, rate.median / 1e9, limit / 1e9, gpu ? 1U : 0U, false});
      section.notes.push_back(fmt::format("Limit of {}: {}.", name, word(one, "limit_is")));
    } else if (rate.median / 1e9 > at->value) {
      at->value = rate.median / 1e9;
      at->limit = limit / 1e9;
    }
  }
  if (chart.bars.size() == 1) chart.groups.clear();
  for (const PageBar& bar : chart.bars)
    section.says +=
        fmt::format("{}{} {}", section.says.empty() ? "At most: " : ", ", bar.label, people(bar.value));
  if (!section.says.empty()) section.says += " GFLOP/s; each product was held against one in double before.";
  section.charts.push_back(chart);
  section.tables.push_back(table);
  const std::string absent = word(json, "gpu_absent");
  if (!absent.empty()) section.notes.push_back("The GPU was left out: " + absent);
  note_unsteady(section, unsteady);
}

}  // namespace shard::bench
