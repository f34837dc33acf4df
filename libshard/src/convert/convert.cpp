// The entrance.
#include "shard/convert/convert.hpp"

#include <fmt/format.h>

#include "convert/revise/convert_to_folder.hpp"
#include "convert/transfer/to_store.hpp"
#include "shard/remote.hpp"

namespace shard::convert {

std::string damaged_text(const image::WarningCounts& warnings) {
  std::string kinds;
  for (std::size_t i = 0; i < image::kWarnings; ++i) {
    const auto kind = static_cast<image::Warning>(i);
    if (warnings.images[i] > 0 && !image::is_harmless(kind))
      kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", image::to_string(kind), warnings.images[i]);
  }
  if (kinds.empty()) return {};
  return fmt::format(
      "images are stored with missing or invented pixels (images per kind: {}), as `on_warning` accept asks; "
      "without it they are rejects",
      kinds);
}

std::string few_bits_text(const image::WarningCounts& warnings) {
  const std::uint64_t count = warnings.images[static_cast<std::size_t>(image::Warning::few_bits)];
  if (count == 0) return {};
  return fmt::format(
      "{} of 16 bits {} values below 16384 only, and as 8 bits they keep the high byte of 16: at most 64 of "
      "256 "
      "levels. `depth` says how many bits the values have; `channels` keep or `dtype` u16 keeps them all",
      count == 1 ? std::string("1 image") : fmt::format("{} images", count), count == 1 ? "has" : "have");
}

Summary run(const Options& options, const Hooks& hooks) {
  options.check();
  return is_remote(options.out) ? run_to_store(options, hooks) : convert_to_folder(options, hooks);
}

}  // namespace shard::convert
