#include "harness/machine.hpp"

#include <cstdlib>
#include <fstream>
#include <string_view>
#include <thread>

#include <fmt/core.h>
#include <sys/utsname.h>
#include <unistd.h>

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

nlohmann::ordered_json machine() {
  utsname names{};
  uname(&names);
  double load = 0;
  getloadavg(&load, 1);
#ifdef __clang__
  const char* const compiler = __VERSION__;
#else
  const char* const compiler = "GCC " __VERSION__;
#endif
  return {{"compiler", compiler},
          {"cores", std::thread::hardware_concurrency()},
          {"cores_online", sysconf(_SC_NPROCESSORS_ONLN)},
          {"cpu", fact("/proc/cpuinfo", "model name")},
          {"decoders", image::decoder_versions()},
          {"kernel", fmt::format("{} {} {}", names.sysname, names.release, names.machine)},
          {"load_at_start", load},
          {"memory_bytes", meminfo_bytes("MemTotal")},
          {"system", fact("/etc/os-release", "PRETTY_NAME")}};
}

}  // namespace shard::bench
