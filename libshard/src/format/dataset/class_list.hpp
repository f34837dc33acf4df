// The classes of several data sets as one list: those of the first keep their labels, and names that are new
// follow in the order in which they appear.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace shard {

// By label in a part: the label in the whole.
using LabelMap = std::vector<std::int64_t>;

class ClassList {
 public:
  // Adds the classes of the next part. Returns what its labels are in this list; null: they stay as they are.
  std::shared_ptr<const LabelMap> add(const std::vector<std::string>& classes);
  const std::vector<std::string>& names() const noexcept { return names_; }

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::int64_t> labels_;  // by name
};

}  // namespace shard
