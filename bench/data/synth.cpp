#include "data/synth.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/core.h>

#include "base/system/parallel.hpp"
#include "base/system/stopwatch.hpp"
#include "base/text/quote.hpp"
#include "data/jpeg_encoder.hpp"
#include "data/photo.hpp"
#include "data/synth_folder.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

namespace fs = std::filesystem;

// Beside the target and then renamed, so that a picture cut short by a kill never looks like one.
void write_file(const fs::path& path, const std::vector<std::byte>& bytes) {
  fs::path temporary = path;
  temporary += kTemporarySuffix;
  errno = 0;
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) {
    const std::string reason = errno != 0 ? std::strerror(errno) : "write failed";
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw Error(ErrorCode::io, fmt::format("cannot write {}: {}: free space or choose another folder",
                                           quoted(path), reason));
  }
  fs::rename(temporary, path);
}

void check(const SynthOptions& options) {
  const auto bounded = [](const char* name, std::uint64_t value, std::uint64_t bound) {
    if (value >= 1 && value <= bound) return;
    throw Error(ErrorCode::invalid_argument, fmt::format("{} is {}: give 1 to {}", name, value, bound));
  };
  bounded("--count", options.count, 10'000'000);
  bounded("--classes", options.classes, 100);
}

}  // namespace

SynthSummary synthesize(const SynthOptions& options, const SynthProgress& progress) {
  check(options);
  prepare_folder(options);
  SynthSummary summary;
  std::mutex mutex;  // of summary and progress
  const Stopwatch watch;
  try {
    parallel_for(thread_count(options.jobs), options.count, [&](unsigned, std::uint64_t index) {
      const PhotoPlan plan = plan_photo(options.seed, index, options.classes);
      const std::vector<std::byte> file = encode_photo(plan, render_photo(plan), photo_comment(plan));
      write_file(options.folder / photo_path(plan), file);

      const std::lock_guard lock(mutex);
      ++summary.images;
      summary.bytes += file.size();
      summary.pixels += std::uint64_t{plan.width} * plan.height;
      summary.seconds = watch.seconds();
      if (progress && !progress(summary))
        throw Error(ErrorCode::cancelled, "stopped: run the same command again to start over");
    });
  } catch (const fs::filesystem_error& error) {
    throw Error(ErrorCode::io, error.what());
  }
  return summary;
}

}  // namespace shard::bench
