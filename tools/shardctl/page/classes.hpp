// The classes of a data set, and which samples of them the page shows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shardctl/dataset/source.hpp"

namespace shard::ctl {

struct PageClass {
  std::int64_t id = 0;
  std::string name;
  std::uint64_t samples = 0;
};

// By id, also those without samples. Empty if labels are no class ids, or are of more than kMostClasses
// kinds. Errors: those of Source::locate().
inline constexpr std::size_t kMostClasses = 10'000;
std::vector<PageClass> count_page_classes(const Source& source);

struct ShownSample {
  std::uint64_t index = 0;
  std::int64_t position = -1;  // of its class in the list; -1: there is no list
};

// `per_class` random samples of each class, or all of a smaller one, by class and index. Without classes, ten
// times as many of all samples. The same seed gives the same samples.
std::vector<ShownSample> choose_samples(const Source& source, const std::vector<PageClass>& classes,
                                        std::uint64_t per_class, std::uint64_t seed);

}  // namespace shard::ctl
