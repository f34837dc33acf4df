// From Python's values to members that are declared (shard/schema.hpp).
#pragma once

#include <fmt/format.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "common.hpp"
#include "shard/error.hpp"
#include "shard/schema.hpp"

namespace shard::python {

// Sets the members of a declared struct from a dict, by their names. What the dict does not have stays as it
// is; None is an error where a member cannot be none.
class FromDict {
 public:
  // where: stands before the message of errors.
  FromDict(std::string where, const nb::dict& given) : where_(std::move(where)), given_(given) {}

  [[noreturn]] void refuse(const std::string& message) const {
    throw Error(ErrorCode::invalid_argument, where_ + message);
  }

  template <class T>
  void operator()(std::string_view name, T& member, const Limits& limits) {
    const nb::str key(name.data(), name.size());
    known_[key] = true;
    if (!given_.contains(key)) return;
    limits_ = limits;
    set(name, member, nb::object(given_[key]));
  }
  // Throws if the dict has more.
  void end() const {
    for (const auto& [key, value] : given_)
      if (!known_.contains(key)) refuse(fmt::format("there is no parameter {}", nb::str(key).c_str()));
  }

 private:
  template <class T>
  T cast(std::string_view name, const nb::handle& value, const char* expected) const {
    try {
      return nb::cast<T>(value);
    } catch (const nb::cast_error&) {
      refuse(fmt::format("{} is {}; expected {}", name, nb::repr(value).c_str(), expected));
    }
  }

  template <class T>
  T whole(std::string_view name, const nb::handle& value) const {
    constexpr T kMost = std::numeric_limits<T>::max();
    const T low = limits_.low > 0 ? static_cast<T>(limits_.low) : T{0};
    const T high = limits_.high < static_cast<double>(kMost) ? static_cast<T>(limits_.high) : kMost;
    return cast<T>(name, value, fmt::format("a whole number from {} to {}", low, high).c_str());
  }

  void set(std::string_view name, double& member, const nb::handle& value) const {
    member = cast<double>(name, value, "a number");
  }
  void set(std::string_view name, std::uint32_t& member, const nb::handle& value) const {
    member = whole<std::uint32_t>(name, value);
  }
  void set(std::string_view name, std::uint64_t& member, const nb::handle& value) const {
    member = whole<std::uint64_t>(name, value);
  }
  void set(std::string_view name, std::filesystem::path& member, const nb::handle& value) const {
    member = cast<std::filesystem::path>(name, value, "a path");
  }
  void set(std::string_view name, bool& member, const nb::handle& value) const {
    member = cast<bool>(name, value, "True or False");
  }
  void set(std::string_view name, Range& member, const nb::handle& value) const {
    const auto both = cast<std::array<double, 2>>(name, value, "two numbers");
    member = {both[0], both[1]};
  }
  void set(std::string_view name, std::array<double, 2>& member, const nb::handle& value) const {
    member = cast<std::array<double, 2>>(name, value, "two numbers");
  }
  // A number for all channels, or one for each.
  void set(std::string_view name, std::array<float, 4>& member, const nb::handle& value) const {
    if (!nb::isinstance<nb::sequence>(value)) {
      member.fill(cast<float>(name, value, "a number, or one for each channel"));
      return;
    }
    const auto numbers = cast<std::vector<float>>(name, value, "a number, or one for each channel");
    if (numbers.empty() || numbers.size() > 4)
      refuse(fmt::format("{} has {} numbers; expected one, or one for each of up to 4 channels", name,
                         numbers.size()));
    for (std::size_t i = 0; i < 4; ++i)
      member[i] = numbers.size() == 1 ? numbers[0] : i < numbers.size() ? numbers[i] : 0.0F;
  }
  void set(std::string_view name, std::array<std::uint32_t, 4>& member, const nb::handle& value) const {
    const auto order = cast<std::vector<std::uint32_t>>(name, value, "a list of channels");
    if (order.empty() || order.size() > 4)
      refuse(fmt::format("{} has {} channels; it takes 1 to 4", name, order.size()));
    member = {4, 4, 4, 4};  // no sample has it: an order that is too short
    std::copy(order.begin(), order.end(), member.begin());
  }
  template <class T>
  void set(std::string_view name, std::optional<T>& member, const nb::handle& value) const {
    member.reset();
    if (!value.is_none()) set(name, member.emplace(), value);
  }
  template <class T>
  requires std::is_enum_v<T>
  void set(std::string_view name, T& member, const nb::handle& value) const {
    const auto words = words_of(T{});
    const std::string expected = quoted_words(words);
    const auto word = cast<std::string>(name, value, expected.c_str());
    const auto at = std::find(words.begin(), words.end(), word);
    if (at == words.end()) refuse(fmt::format("{} is \"{}\"; expected {}", name, word, expected));
    member = static_cast<T>(at - words.begin());
  }

  std::string where_;
  nb::dict given_;
  nb::dict known_;
  Limits limits_;  // of the member that is set
};

}  // namespace shard::python
