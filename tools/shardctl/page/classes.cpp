#include "shardctl/page/classes.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <utility>

#include "base/digest/mix64.hpp"
#include "shardctl/dataset/labels.hpp"

namespace shard::ctl {
namespace {

constexpr std::uint64_t kWithoutClasses = 10;  // times as many samples

// The few smallest of many pairs (random number, index): that many random indices.
class Drawn {
 public:
  void add(std::uint64_t random, std::uint64_t index, std::uint64_t most) {
    if (heap_.size() < most) {
      heap_.emplace(random, index);
    } else if (random < heap_.top().first) {
      heap_.pop();
      heap_.emplace(random, index);
    }
  }
  std::vector<std::uint64_t> take() {
    std::vector<std::uint64_t> indices;
    for (; !heap_.empty(); heap_.pop()) indices.push_back(heap_.top().second);
    std::sort(indices.begin(), indices.end());
    return indices;
  }

 private:
  std::priority_queue<std::pair<std::uint64_t, std::uint64_t>> heap_;
};

}  // namespace

std::vector<PageClass> count_page_classes(const Source& source) {
  std::map<std::int64_t, std::uint64_t> counts;
  const auto& names = source.info().classes;
  for (std::size_t id = 0; id < names.size(); ++id) counts[static_cast<std::int64_t>(id)] = 0;
  for (std::uint64_t index = 0; index < source.size(); ++index) {
    const Source::Sample sample = source.locate(index);
    const auto id = class_id(sample.reader, sample.index);
    if (!id) return {};
    ++counts[*id];
    if (counts.size() > kMostClasses) return {};
  }
  std::vector<PageClass> classes;
  for (const auto& [id, samples] : counts) {
    const bool named = id >= 0 && static_cast<std::uint64_t>(id) < names.size();
    classes.push_back({id, named ? names[static_cast<std::size_t>(id)] : std::to_string(id), samples});
  }
  return classes;
}

std::vector<ShownSample> choose_samples(const Source& source, const std::vector<PageClass>& classes,
                                        std::uint64_t per_class, std::uint64_t seed) {
  const bool grouped = !classes.empty();
  const std::uint64_t most = grouped ? per_class : per_class * kWithoutClasses;
  std::vector<Drawn> drawn(grouped ? classes.size() : 1);
  for (std::uint64_t index = 0; index < source.size(); ++index) {
    std::size_t position = 0;
    if (grouped) {
      const Source::Sample sample = source.locate(index);
      const std::int64_t id = class_id(sample.reader, sample.index).value_or(-1);
      const auto at = std::lower_bound(classes.begin(), classes.end(), id,
                                       [](const PageClass& one, std::int64_t of) { return one.id < of; });
      if (at == classes.end() || at->id != id) continue;  // the file changed since it was counted
      position = static_cast<std::size_t>(at - classes.begin());
    }
    drawn[position].add(mix64(mix64(seed) ^ index), index, most);
  }
  std::vector<ShownSample> samples;
  for (std::size_t position = 0; position < drawn.size(); ++position) {
    for (const std::uint64_t index : drawn[position].take())
      samples.push_back({index, grouped ? static_cast<std::int64_t>(position) : -1});
  }
  return samples;
}

}  // namespace shard::ctl
