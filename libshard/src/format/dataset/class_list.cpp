#include "format/dataset/class_list.hpp"

namespace shard {

std::shared_ptr<const LabelMap> ClassList::add(const std::vector<std::string>& classes) {
  auto labels = std::make_shared<LabelMap>();
  bool same = true;
  for (const std::string& name : classes) {
    const auto [at, added] = labels_.emplace(name, static_cast<std::int64_t>(names_.size()));
    if (added) names_.push_back(name);
    same = same && at->second == static_cast<std::int64_t>(labels->size());
    labels->push_back(at->second);
  }
  return same ? nullptr : labels;
}

}  // namespace shard
