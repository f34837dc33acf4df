// The machine and libraries that a figure was measured with: without them a figure means nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace shard::bench {

struct Machine {
  std::string cpu;            // "Intel(R) Xeon(R) Processor"; "unknown" where the system does not say
  unsigned cores = 0;         // that this process may use
  unsigned cores_online = 0;  // of the machine
  std::uint64_t memory_bytes = 0;
  std::string kernel;  // "Linux 6.1.0-18-amd64 x86_64"
  std::string system;  // "Debian GNU/Linux 12 (bookworm)"
  std::string compiler;
  std::string decoders;  // image::decoder_versions()
  double load = 0;       // runnable threads over the last minute, at the start
};

Machine machine();  // never throws for what the system does not tell
nlohmann::json to_json(const Machine& machine);
std::uint64_t meminfo_bytes(std::string_view name);  // of /proc/meminfo; 0: unknown

}  // namespace shard::bench
