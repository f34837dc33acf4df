#include "transform/augment/mix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "shard/error.hpp"
#include "transform/augment/mix_math.hpp"
#include "transform/augment/operation_draws.hpp"
#include "transform/elements.hpp"
#include "transform/float_transform.hpp"

namespace shard {

void check_mix(const MixOptions& options) {
  const auto within = [](const char* name, double value, double high) {
    if (!(value >= 0 && value <= high))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} is {}; it must be 0 to {}", name, value, high));
  };
  within("mixup", options.mixup, 1e6);
  within("cutmix", options.cutmix, 1e6);
  within("mix_probability", options.probability, 1);
  within("cutmix_probability", options.cutmix_probability, 1);
}

MixPair draw_mix(const SampleSpec& delivered, const MixOptions& options, std::uint64_t seed,
                 std::uint64_t epoch, std::uint64_t pair) noexcept {
  augment::OperationDraws draws(augment::derived_seed(seed, 0, augment::kDrawMix, 0), epoch, pair);
  if (!options.enabled() || !draws.chance(options.probability)) return {};
  const bool either = draws.chance(options.cutmix_probability);
  const bool cut = options.cutmix > 0 && (options.mixup <= 0 || either);
  const double alpha = cut ? options.cutmix : options.mixup;
  const double share = draws.beta(alpha, alpha);
  if (!cut) return {static_cast<float>(share)};
  // As torchvision's CutMix: the box is cut off at the borders, and the share follows it.
  const double half = 0.5 * std::sqrt(1 - share);
  const auto across = static_cast<std::uint32_t>(half * delivered.width);
  const auto down = static_cast<std::uint32_t>(half * delivered.height);
  const std::uint32_t x = draws.below(delivered.width);
  const std::uint32_t y = draws.below(delivered.height);
  MixPair box;
  box.left = x - std::min(x, across);
  box.top = y - std::min(y, down);
  box.right = std::min(x + across, delivered.width);
  box.bottom = std::min(y + down, delivered.height);
  const double area = static_cast<double>(box.right - box.left) * (box.bottom - box.top);
  box.share = static_cast<float>(1 - area / (static_cast<double>(delivered.width) * delivered.height));
  return box;
}

namespace augment {

namespace {

template <class Type>
void mix_two(const MixPair& pair, const SampleSpec& spec, std::byte* first, std::byte* second) {
  using Stored = typename Type::Stored;
  auto* const a = reinterpret_cast<Stored*>(first);
  auto* const b = reinterpret_cast<Stored*>(second);
  const std::uint64_t elements = spec.elements();
  if (is_mixup(pair)) {
    if (pair.share == 1.0F) return;
    for (std::uint64_t i = 0; i < elements; ++i) {
      const float x = Type::load(a[i]);
      const float y = Type::load(b[i]);
      a[i] = Type::store(mixed(x, y, pair.share));
      b[i] = Type::store(mixed(y, x, pair.share));
    }
    return;
  }
  const MixShape shape{spec.width, spec.height, spec.layout == Layout::nhwc ? spec.channels : 1};
  for (std::uint64_t i = 0; i < elements; ++i)
    if (in_box(pair, shape.column(i), shape.row(i))) std::swap(a[i], b[i]);
}

}  // namespace

void check_pairs(const TransformWork& work) {
  if (work.stored.dtype != DType::u8 || 2 * work.pairs.size() != work.sources.size())
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("transform: {} pairs of {} rows stored as {}; there must be half as many, stored as u8",
                    work.pairs.size(), work.sources.size(), to_string(work.stored.dtype)));
}

void mix_pairs(const TransformWork& work, std::size_t first, std::size_t last) {
  const DefaultFloatEnvironment environment;
  const std::size_t size = work.delivered.size_bytes();
  for (std::size_t i = first; i < last; ++i) {
    std::byte* const a = work.target + 2 * i * size;
    std::byte* const b = a + size;
    with_type(work.delivered.dtype,
              [&](auto type) { mix_two<decltype(type)>(work.pairs[i], work.delivered, a, b); });
  }
}

}  // namespace augment

}  // namespace shard
