#include "shardctl/dataset/damage.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <iterator>

#include "cli/output.hpp"
#include "cli/text.hpp"

namespace shard::ctl {
namespace {

constexpr std::size_t kMaxNamed = 100;

}  // namespace

std::uint64_t Damage::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

void Damage::add(std::uint64_t index, const char* message) {
  const std::lock_guard lock(mutex_);
  ++count_;
  first_.emplace(index, message);
  if (first_.size() > kMaxNamed) first_.erase(std::prev(first_.end()));
}

void Damage::report(std::string_view consequence) const {
  const std::lock_guard lock(mutex_);
  cli::flush_out();
  std::string last;
  for (const auto& [index, message] : first_) {
    // A damaged head is the same message for every sample of its shard.
    if (message != last) fmt::print(stderr, "shardctl: {}\n", message);
    last = message;
  }
  fmt::print(stderr,
             "shardctl: {}{}; {}. `shardctl verify` checks everything; restore the files, or convert "
             "again\n",
             cli::counted(count_, "damaged " + what_), count_ > first_.size() ? " (the first are named)" : "",
             consequence);
}

}  // namespace shard::ctl
