#include "report/section.hpp"
#include "sections.hpp"

namespace shard::bench {
namespace {

std::string limit_text(const ReportJson& bytes) {
  return bytes.is_number() ? bytes_text(bytes.get<double>()) : std::string("no limit");
}

std::string link_text(const ReportJson& link) {
  if (!(number(link, "bytes_per_second") > 0)) return "not known";
  return fmt::format("PCIe gen {} x{} ({} GB/s)", people(link, "generation"), people(link, "width"),
                     gbs(link, "bytes_per_second"));
}

void add_gpus(PageTable& table, const ReportJson& cuda) {
  const std::string absent = word(cuda, "absent");
  if (member(cuda, "devices").empty())
    table.add({"no CUDA device", absent.empty() ? "not looked at" : absent});
  for (const ReportJson& gpu : member(cuda, "devices")) {
    table.add({fmt::format("GPU {}", people(gpu, "ordinal")),
               fmt::format("{}, {} ({} free), compute capability {}, {} multiprocessors", word(gpu, "name"),
                           bytes_text(gpu, "memory_bytes"), bytes_text(gpu, "free_bytes"),
                           word(gpu, "compute_capability"), people(gpu, "multiprocessors"))});
    table.add({"link", fmt::format("{} now; {} at most; {}", link_text(member(gpu, "link")),
                                   link_text(member(gpu, "link_at_most")), word(gpu, "bus_id"))});
    const std::string registration = word(gpu, "registration");
    table.add({"register shards in place", registration == "works" ? "works" : "no: " + registration});
    table.add({"batched copies", yes(gpu, "batched_copy") ? "yes" : "no: " + word(gpu, "copy_note")});
  }
  if (member(cuda, "devices").empty()) return;
  const ReportJson& storage = member(cuda, "gpudirect_storage");
  const std::string module = word(storage, "nvidia_fs");
  table.add({"CUDA", fmt::format("driver {}, runtime {}{}", word(cuda, "driver"), word(cuda, "runtime"),
                                 absent.empty() ? "" : "; left out: " + absent)});
  table.add({"GPUDirect Storage",
             fmt::format("libcufile is {}, kernel module nvidia-fs is {}; the loader does not use it",
                         yes(storage, "libcufile") ? "there" : "not there",
                         module.empty() ? "not there" : module)});
}

void add_cpu(PageTable& table, const ReportJson& json) {
  const ReportJson& machine = member(json, "machine");
  const ReportJson& cpu = member(json, "cpu");
  const double quota = number(cpu, "quota_cores");
  table.add({"CPU", word(machine, "cpu")});
  table.add(
      {"cores",
       fmt::format("{} usable of {} online; {}", people(machine, "cores"), people(machine, "cores_online"),
                   quota > 0 ? "the cgroup's quota allows " + people(quota) : "no cgroup quota")});
  std::vector<std::string> caches, simd;
  for (const ReportJson& cache : member(cpu, "caches"))
    caches.push_back(fmt::format("L{} {} {}", people(cache, "level"), word(cache, "type"),
                                 bytes_text(cache, "size_bytes")));
  for (const ReportJson& one : member(cpu, "simd_available"))
    if (one.is_string()) simd.push_back(one.get<std::string>());
  table.add({"caches", caches.empty() ? "not known" : joined(caches, ", ")});
  table.add({"vectors", word(cpu, "simd") + " of " + joined(simd, " ")});
}

void fill_device(PageSection& section, const ReportJson& json) {
  PageTable table{"What this machine has, and what the loader can use of it", {"what", "is"}, 2};
  add_gpus(table, member(json, "cuda"));
  add_cpu(table, json);
  const ReportJson& machine = member(json, "machine");
  const ReportJson& memory = member(json, "memory");
  table.add({"memory", fmt::format("{}, {} available; left by the cgroup: {}",
                                   bytes_text(machine, "memory_bytes"), bytes_text(memory, "available_bytes"),
                                   limit_text(member(memory, "cgroup_available_bytes")))});
  table.add({"locked by mlock", fmt::format("{} (hard: {}); what CUDA registers or allocates does not count",
                                            limit_text(member(memory, "memlock_soft_bytes")),
                                            limit_text(member(memory, "memlock_hard_bytes")))});
  table.add({"registered shards",
             bytes_text(memory, "registered_budget_bytes") +
                 " at most, unless registered_bytes says otherwise: half of what is available"});
  table.add({"system", word(machine, "system") + ", " + word(machine, "kernel")});
  section.tables.push_back(table);
  PageTable disks{"Filesystems", {"path", "filesystem", "disk", "O_DIRECT", "free", "size", "block"}, 4};
  for (const ReportJson& one : member(json, "filesystems")) {
    if (!word(one, "problem").empty()) {
      disks.leave_out({word(one, "path")}, word(one, "problem"));
      continue;
    }
    const ReportJson& rotational = member(one, "rotational");
    const double alignment = number(one, "direct_alignment");
    disks.add({word(one, "path"),
               fmt::format("{} on {} ({})", word(one, "type"), word(one, "source"), word(one, "mount")),
               !rotational.is_boolean() ? "not described"
               : rotational.get<bool>() ? "rotational"
                                        : "not rotational",
               word(one, "direct") + (alignment > 0 ? ", offsets in multiples of " + people(alignment) : ""),
               bytes_text(one, "free_bytes"), bytes_text(one, "size_bytes"), bytes_text(one, "block_bytes")});
  }
  section.tables.push_back(disks);
}

}  // namespace

PageSection device_section(const ReportJson& json) {
  return section_of("device", "The machine", json, fill_device);
}

}  // namespace shard::bench
