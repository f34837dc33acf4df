#include "shard/image/warnings.hpp"

namespace shard::image {
namespace {

struct Fact {
  std::string_view name;
  bool harmless;
};

// In the order of Warning.
constexpr std::array<Fact, kWarnings> kFacts{{
    {"adobe_transform", true},
    {"extraneous_bytes", true},
    {"jfif_version", true},
    {"scan_parameters", true},
    {"icc_profile", true},
    {"arithmetic_code", false},
    {"huffman_code", false},
    {"premature_marker", false},
    {"premature_end", false},
    {"progression", false},
    {"restart_marker", false},
    {"other", false},
    {"few_bits", true},
}};

constexpr std::array<std::string_view, 3> kChoices{"harmless", "accept", "reject"};

}  // namespace

std::string_view to_string(Warning warning) noexcept {
  const auto index = static_cast<std::size_t>(warning);
  return index < kWarnings ? kFacts[index].name : std::string_view("unknown");
}

bool is_harmless(Warning warning) noexcept {
  const auto index = static_cast<std::size_t>(warning);
  return index < kWarnings && kFacts[index].harmless;
}

std::string_view to_string(OnWarning choice) noexcept {
  const auto index = static_cast<std::size_t>(choice);
  return index < kChoices.size() ? kChoices[index] : std::string_view("unknown");
}

std::optional<OnWarning> on_warning_from_string(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kChoices.size(); ++i)
    if (kChoices[i] == name) return static_cast<OnWarning>(i);
  return std::nullopt;
}

}  // namespace shard::image
