#include "shard/loader/stats.hpp"

#include <type_traits>

namespace shard {

LoaderStats& LoaderStats::operator+=(const LoaderStats& later) {
  const auto add = [&]<class T>(const Statistic&, T LoaderStats::* member) {
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
  const auto clear = [&]<class T>(const Statistic& statistic, T LoaderStats::* member) {
    if (statistic.now || !std::is_arithmetic_v<T>) kept.*member = T{};
  };
  members(clear);
  return kept;
}

}  // namespace shard
