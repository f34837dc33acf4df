// The machine and libraries that a figure was measured with: without them a figure means nothing.
#pragma once

#include <cstdint>
#include <string_view>

#include <nlohmann/json.hpp>

namespace shard::bench {

// cpu, system, kernel, compiler and decoders ("unknown" if the system does not tell); cores (that this
// process may use), cores_online (of the machine), memory_bytes; load_at_start: runnable threads over the
// last minute. What the system does not tell is never a reason to throw.
nlohmann::ordered_json machine();
std::uint64_t meminfo_bytes(std::string_view name);  // of /proc/meminfo; 0: unknown

}  // namespace shard::bench
