// Random operations, and pixels to apply them to.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "shard/loader/augment.hpp"
#include "support/transform/random_work.hpp"

namespace shard::testing {

inline constexpr std::uint32_t kOperationKinds = std::variant_size_v<Operation>;

// Gives each parameter a random value: of all within its bounds, or where these are wide, within four times
// what is shown of it or its default.
class RandomParameters {
 public:
  explicit RandomParameters(Random& random) : random_(random) {}

  template <class T>
  void operator()(std::string_view, T& member, const Limits& limits) {
    set(member, limits);
  }

 private:
  double number(double low, double high) const {
    return low + (high - low) * random_.between(0, 1000) / 1000.0;
  }
  // What is drawn from.
  Range bounds(const Limits& limits, const Range& now) const {
    const Range shown = limits.shown.value_or(now);
    const double width = std::max({shown.high - shown.low, std::abs(shown.high), 1.0});
    if (limits.high - limits.low <= 400) return {limits.low, limits.high};
    return {std::max(limits.low, shown.low - 1.5 * width), std::min(limits.high, shown.high + 1.5 * width)};
  }
  void set(Range& member, const Limits& limits) {
    const Range from = bounds(limits, member);
    member.low = number(from.low, from.high);
    member.high = number(member.low, from.high);
  }
  void set(double& member, const Limits& limits) {
    const Range from = bounds(limits, {member, member});
    member = number(from.low, from.high);
  }
  void set(std::uint32_t& member, const Limits& limits) {
    const auto now = static_cast<double>(member);
    const Range from = bounds(limits, {now, now});
    const auto low = static_cast<std::uint32_t>(from.low);
    member = random_.between(low, static_cast<std::uint32_t>(from.high));
    if (limits.odd) member |= 1U;
  }
  void set(bool& member, const Limits&) { member = random_.coin(); }
  void set(std::array<double, 2>& member, const Limits& limits) {
    for (double& one : member) set(one, limits);
  }
  void set(std::array<float, 4>& member, const Limits&) { member = {7, 100.5F, 255, 0}; }
  void set(std::array<std::uint32_t, 4>& member, const Limits&) { member = {0, 1, 2, 3}; }
  template <class T>
  void set(std::optional<T>& member, const Limits& limits) {
    member.reset();
    if (random_.coin()) set(member.emplace(), limits);
  }
  template <class T>
  requires std::is_enum_v<T>
  void set(T& member, const Limits&) {
    member = static_cast<T>(random_.between(0, static_cast<std::uint32_t>(words_of(T{}).size()) - 1));
  }

  Random& random_;
};

// One of `kind`, applied always, with random parameters that samples of this shape can have: others are drawn
// until they can. Kinds that cannot have this shape become an inversion.
inline Operation random_operation(Random& random, const SampleSpec& pixels, std::uint32_t kind) {
  for (int attempt = 0; attempt < 50; ++attempt) {
    Operation operation = all_operations()[kind];
    RandomParameters parameters(random);
    std::visit(
        [&](auto& one) {
          ops::visit_members(one, parameters);
          one.p = 1;
        },
        operation);
    try {
      check_operations(pixels, {operation});
      return operation;
    } catch (const Error&) {
      continue;
    }
  }
  return ops::Invert{};
}

inline std::vector<Operation> random_operations(Random& random, const SampleSpec& pixels,
                                                std::uint32_t most) {
  std::vector<Operation> operations;
  const std::uint32_t count = random.between(1, most);
  for (std::uint32_t i = 0; i < count; ++i)
    operations.push_back(random_operation(random, pixels, random.between(0, kOperationKinds - 1)));
  return operations;
}

}  // namespace shard::testing
