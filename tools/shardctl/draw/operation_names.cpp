#include "shardctl/draw/operation_names.hpp"

#include <algorithm>

namespace shard::ctl {

namespace {

// The parts of color_jitter can be looked at one by one.
std::optional<Operation> part_named(std::string_view name) {
  Operation operation = all_operations()[0];
  auto& part = std::get<ops::ColorJitter>(operation);
  if (name == "brightness")
    part.brightness = ops::kFactor.shown;
  else if (name == "contrast")
    part.contrast = ops::kFactor.shown;
  else if (name == "saturation")
    part.saturation = Range{0, 2};
  else if (name == "hue")
    part.hue = Range{-0.5, 0.5};
  else
    return std::nullopt;
  return operation;
}

}  // namespace

std::optional<Operation> visible_operation(std::string_view name) {
  if (auto part = part_named(name)) return part;
  std::string words(name);
  std::replace(words.begin(), words.end(), '-', '_');
  const std::optional<Operation> known = operation_named(words);
  if (!known || description_of(*known).is_policy) return std::nullopt;
  return shown(*known);
}

std::string operation_names() {
  std::string names = "brightness, contrast, saturation, hue";
  for (const Operation& one : all_operations())
    if (!description_of(one).is_policy) names.append(", ").append(name_of(one));
  std::replace(names.begin(), names.end(), '_', '-');
  return names;
}

}  // namespace shard::ctl
