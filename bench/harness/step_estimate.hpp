// Progress through a known number of steps, and about how long the rest of them takes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/system/stopwatch.hpp"
#include "cli/progress.hpp"

namespace shard::bench {

// "repeat 3 of 5, about 12.3 s left": two are done, which took `seconds`.
std::string step_text(std::string_view step, std::size_t done, std::size_t count, double seconds);

class StepProgress {
 public:
  explicit StepProgress(std::string step) : step_(std::move(step)) {}
  // Shows what is done besides the steps. The time before the first step is not part of the estimate.
  void prepare(std::string_view text);
  // Shows that `done` of `count` steps are done, after the name of the stage if it is not empty.
  void show(std::size_t done, std::size_t count, std::string_view stage = {});
  void finish() noexcept { progress_.finish(); }

 private:
  std::string step_;
  bool stepped_ = false;
  Stopwatch watch_;  // since the first step began
  cli::Progress progress_;
};

}  // namespace shard::bench
