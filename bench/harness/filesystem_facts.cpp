#include "harness/filesystem_facts.hpp"

#include "base/files/disk.hpp"

namespace shard::bench {

nlohmann::ordered_json filesystem_facts(const std::filesystem::path& path) {
  const Disk disk = read_disk(path);
  if (!disk.problem.empty()) return {{"path", path.string()}, {"problem", disk.problem}};
  using Json = nlohmann::ordered_json;
  return {
      {"path", path.string()},           {"type", disk.type},
      {"source", disk.source},           {"mount", disk.mount},
      {"size_bytes", disk.size_bytes},   {"free_bytes", disk.free_bytes},
      {"block_bytes", disk.block_bytes}, {"rotational", disk.rotational ? Json(*disk.rotational) : Json()},
      {"direct", disk.direct},           {"direct_alignment", disk.direct_alignment}};
}

}  // namespace shard::bench
