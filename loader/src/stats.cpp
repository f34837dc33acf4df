#include "shard/loader/stats.hpp"

#include <cstddef>
#include <type_traits>

namespace shard {

namespace {

constexpr std::size_t bytes_of_rows() {
  std::size_t bytes = 0;
  const auto add = [&]<class T>(const Statistic&, T LoaderStats::*) {
    constexpr std::size_t kStep = alignof(LoaderStats);
    bytes += (sizeof(T) + kStep - 1) / kStep * kStep;
  };
  LoaderStats::members(add);
  return bytes;
}
static_assert(bytes_of_rows() == sizeof(LoaderStats), "a member of LoaderStats has no row, or two");

}  // namespace

LoaderStats& LoaderStats::operator+=(const LoaderStats& later) {
  const auto add = [&]<class T>(const Statistic&, T LoaderStats::*member) {
    if constexpr (std::is_arithmetic_v<T>)
      this->*member += later.*member;
    else if (later.*member != T{})
      this->*member = later.*member;
  };
  members(add);
  return *this;
}

LoaderStats LoaderStats::counted() const {
  LoaderStats kept = *this;
  const auto clear = [&]<class T>(const Statistic& statistic, T LoaderStats::*member) {
    if (statistic.now || !std::is_arithmetic_v<T>) kept.*member = T{};
  };
  members(clear);
  return kept;
}

}  // namespace shard
