#include "convert/publish/pixel_bound.hpp"

#include <fmt/format.h>

#include "base/text/number.hpp"
#include "base/text/quote.hpp"
#include "convert/publish/input_table.hpp"
#include "convert/publish/tables.hpp"
#include "shard/dataset.hpp"
#include "shard/keys.hpp"

namespace shard::convert {

std::optional<std::uint64_t> pixel_bound_of(std::string_view reason) {
  if (reason.find(" (--max-pixels") == std::string_view::npos) return std::nullopt;
  constexpr std::string_view kBefore = "the bound of ";
  const std::size_t begin = reason.find(kBefore);
  if (begin == std::string_view::npos) return std::nullopt;
  const auto number_at = [&](std::size_t at, std::string_view behind) -> std::optional<std::uint64_t> {
    std::string_view rest = reason.substr(at);
    const auto number = take_number<std::uint64_t>(rest);
    return rest.starts_with(behind) ? number : std::nullopt;
  };
  // "the bound of N pixels", or "the bound of BYTES (N pixels of 16 bytes)".
  const std::size_t at = begin + kBefore.size();
  if (const auto pixels = number_at(at, " pixels")) return pixels;
  const std::size_t inner = reason.find('(', at);
  return inner == std::string_view::npos ? std::nullopt : number_at(inner + 1, " pixels of ");
}

bool refused_by_lower_bound(std::string_view reason, std::uint64_t max_pixels) {
  return pixel_bound_of(reason).value_or(max_pixels) < max_pixels;
}

BoundRejects rejects_below(const std::filesystem::path& out, std::uint64_t max_pixels,
                           const InputList* list) {
  BoundRejects found;
  if (!has_table(out, kRejectsFile)) return found;
  read_csv(out / kRejectsFile, [&](std::vector<std::string>& fields) {
    if (fields.size() != 2) return true;
    const auto bound = pixel_bound_of(fields[1]);
    if (!bound || *bound >= max_pixels) return true;
    if (list != nullptr && find_key(*list, unescape_key(fields[0])) == nullptr) return true;
    if (found.count++ == 0) {
      found.first = fields[0];
      found.first_bound = *bound;
    }
    return true;
  });
  return found;
}

std::string describe(const BoundRejects& rejects, std::uint64_t max_pixels) {
  return fmt::format(
      "{} of the rejects {} more pixels than the bound that was given then (first {}: {}), and `max_pixels` "
      "is {} now",
      rejects.count, rejects.count == 1 ? "has" : "have", quoted_key(rejects.first), rejects.first_bound,
      max_pixels);
}

}  // namespace shard::convert
