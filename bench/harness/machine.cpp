#include "harness/machine.hpp"

#include <cstdlib>
#include <fstream>
#include <string_view>
#include <thread>

#include <fmt/core.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "shard/image/decode.hpp"

namespace shard::bench {
namespace {

// The rest of the first line of `file` that begins with `name`, without what separates them and without
// quotes.
std::string fact(const char* file, std::string_view name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(name)) continue;
    const auto begin = line.find_first_not_of(" \t:=\"", name.size());
    const auto end = line.find_last_not_of(" \t\"");
    if (begin == std::string::npos || end < begin) break;
    return line.substr(begin, end - begin + 1);
  }
  return "unknown";
}

}  // namespace

std::uint64_t meminfo_bytes(std::string_view name) {
  return std::strtoull(fact("/proc/meminfo", name).c_str(), nullptr, 10) * 1024;  // "unknown": 0
}

Machine machine() {
  Machine m;
  m.cpu = fact("/proc/cpuinfo", "model name");
  m.cores = std::thread::hardware_concurrency();
  m.cores_online = static_cast<unsigned>(sysconf(_SC_NPROCESSORS_ONLN));
  m.memory_bytes = meminfo_bytes("MemTotal");
  utsname names{};
  if (uname(&names) == 0) m.kernel = fmt::format("{} {} {}", names.sysname, names.release, names.machine);
  m.system = fact("/etc/os-release", "PRETTY_NAME");
#ifdef __clang__
  m.compiler = __VERSION__;
#else
  m.compiler = fmt::format("GCC {}", __VERSION__);
#endif
  m.decoders = image::decoder_versions();
  double load = 0;
  if (getloadavg(&load, 1) == 1) m.load = load;
  return m;
}

nlohmann::json to_json(const Machine& m) {
  return {{"cpu", m.cpu},
          {"cores", m.cores},
          {"cores_online", m.cores_online},
          {"memory_bytes", m.memory_bytes},
          {"kernel", m.kernel},
          {"system", m.system},
          {"compiler", m.compiler},
          {"decoders", m.decoders},
          {"load_at_start", m.load}};
}

}  // namespace shard::bench
