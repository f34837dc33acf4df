// Rejects that a higher bound on pixels would store.
//
// The bound is no part of what a data set records, because it does not change the bytes of a sample. The
// reasons of rejects have it: what a run with a higher one finds there is not finished.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "convert/sources/scan.hpp"

namespace shard::convert {

// The bound that refused an image, from the reason in rejects.csv or in a receipt; nothing of other reasons.
std::optional<std::uint64_t> pixel_bound_of(std::string_view reason);
// Whether it was a lower one than `max_pixels`.
bool refused_by_lower_bound(std::string_view reason, std::uint64_t max_pixels);

struct BoundRejects {
  std::uint64_t count = 0;
  std::string first;  // its key
  std::uint64_t first_bound = 0;
};
// The rejects in the rejects.csv of a data set that a lower bound than `max_pixels` refused; with `list` only
// those that are in it. Without a file: none. Errors: io, corrupt.
BoundRejects rejects_below(const std::filesystem::path& out, std::uint64_t max_pixels,
                           const InputList* list = nullptr);
// "2 of its rejects have more pixels than the bound of then (first ...), and `max_pixels` is larger now".
std::string describe(const BoundRejects& rejects, std::uint64_t max_pixels);

}  // namespace shard::convert
