#include "prefetch/fetch_width.hpp"

#include <algorithm>
#include <utility>

namespace shard {

namespace {

constexpr double kGain = 0.2;  // half more width must raise the rate by a tenth
// A measurement ends after this many shards per shard of the width, but takes no less than the first time and
// no more than the second.
constexpr unsigned kRounds = 2;
constexpr double kLeastSeconds = 0.03;
constexpr double kMostSeconds = 1;
constexpr unsigned kPatience = 8;  // measurements; doubled with each attempt
constexpr unsigned kMostDoublings = 3;

}  // namespace

void FetchWidth::arrived(std::uint64_t received_bytes, double seconds) {
  ++shards_;
  if (excess_ > 0) --excess_;
  look(received_bytes, seconds);
}

void FetchWidth::look(std::uint64_t received_bytes, double seconds) {
  const auto begin = [&](Phase phase) {
    phase_ = phase;
    begin_ = seconds;
    bytes_ = received_bytes;
    shards_ = 0;
  };
  const double passed = seconds - begin_;
  switch (phase_) {
    case Phase::none:
      return begin(Phase::before);
    case Phase::before:
      if (excess_ == 0 && (shards_ >= width_ || passed >= kMostSeconds)) begin(Phase::during);
      return;
    case Phase::during:
      if (passed < kMostSeconds && (shards_ < kRounds * width_ || passed < kLeastSeconds)) return;
      phase_ = Phase::none;
      if (received_bytes > bytes_) measured(static_cast<double>(received_bytes - bytes_) / passed);
  }
}

void FetchWidth::paused() noexcept {
  phase_ = Phase::none;
  if (least_ == kFirst) {
    set(least_ = kLeast);
    narrower_ = patience_ = 0;
  }
  if (patience_ == 0 && narrower_ != 0) set(std::exchange(narrower_, 0));
  excess_ = 0;
}

void FetchWidth::measured(double rate) {
  if (patience_ > 0) {
    if (++measured_ == patience_) {
      set(least_);
      narrower_ = patience_ = 0;
    }
    return;
  }
  if (narrower_ != 0) {
    const double more = static_cast<double>(width_ - narrower_) / narrower_;
    if (rate < rate_ * (1 + kGain * more)) return settle(narrower_);
  }
  if (width_ == kMost) return settle(width_);
  narrower_ = width_;
  rate_ = rate;
  set(std::min(width_ + (width_ + 1) / 2, kMost));
}

void FetchWidth::set(unsigned width) noexcept {
  excess_ = width_ > width ? width_ - width : 0;
  width_ = width;
}

void FetchWidth::settle(unsigned width) noexcept {
  set(width);
  measured_ = 0;
  patience_ = kPatience << std::min(attempts_++, kMostDoublings);
}

}  // namespace shard
