#include "data/synth.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/core.h>

#include "base/cpu_count.hpp"
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
    throw Error(ErrorCode::io,
                fmt::format("{}: {}: free space or choose another folder", path.string(), reason));
  }
  fs::rename(temporary, path);
}

class Synthesizer {
 public:
  Synthesizer(const SynthOptions& options, const SynthProgress& progress)
      : options_(options), progress_(progress) {}

  SynthSummary run(unsigned jobs) {
    {
      std::vector<std::jthread> threads;
      for (unsigned k = 0; k < jobs; ++k) threads.emplace_back([this] { work(); });
    }
    if (failure_) std::rethrow_exception(failure_);
    summary_.seconds = seconds();
    return summary_;
  }

 private:
  void work() noexcept {
    try {
      while (!stop_) {
        const std::uint64_t index = next_++;
        if (index >= options_.count) return;
        make(index);
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      stop_ = true;
    }
  }

  void make(std::uint64_t index) {
    const PhotoPlan plan = plan_photo(options_.seed, index, options_.classes);
    const std::vector<std::byte> file = encode_photo(plan, render_photo(plan), photo_comment(plan));
    write_file(options_.folder / photo_path(plan), file);

    const std::lock_guard lock(mutex_);
    ++summary_.images;
    summary_.bytes += file.size();
    summary_.pixels += std::uint64_t{plan.width} * plan.height;
    summary_.seconds = seconds();
    if (progress_ && !progress_(summary_))
      throw Error(ErrorCode::cancelled, "stopped: the same command begins again");
  }

  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  const SynthOptions& options_;
  const SynthProgress& progress_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::atomic<std::uint64_t> next_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;  // guards what follows
  SynthSummary summary_;
  std::exception_ptr failure_;
};

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
  const unsigned cores = cpu_count();
  const std::uint64_t jobs = std::min<std::uint64_t>(options.jobs == 0 ? cores : options.jobs, options.count);
  try {
    return Synthesizer(options, progress).run(static_cast<unsigned>(jobs));
  } catch (const fs::filesystem_error& error) {
    throw Error(ErrorCode::io, error.what());
  }
}

}  // namespace shard::bench
