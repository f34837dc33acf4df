#include "harness/step_estimate.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "cli/text.hpp"

namespace shard::bench {

std::string step_text(std::string_view step, std::size_t done, std::size_t count, double seconds) {
  std::string text = fmt::format("{} {} of {}", step, std::min(done + 1, count), count);
  if (done > 0 && done < count) {
    const double left = seconds / static_cast<double>(done) * static_cast<double>(count - done);
    text += fmt::format(", about {} left", cli::human_duration(left));
  }
  return text;
}

void StepProgress::prepare(std::string_view text) {
  progress_.update(text);
  if (!stepped_) watch_.restart();
}

void StepProgress::show(std::size_t done, std::size_t count, std::string_view stage) {
  if (done == 0) watch_.restart();
  stepped_ = stepped_ || done > 0;
  progress_.update(fmt::format("{}{}{}", stage, stage.empty() ? "" : ": ",
                               step_text(step_, done, count, watch_.seconds())));
}

}  // namespace shard::bench
