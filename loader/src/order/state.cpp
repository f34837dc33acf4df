#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "base/digest/checksum.hpp"
#include "base/text/number.hpp"
#include "base/text/quote.hpp"
#include "fields/view_text.hpp"
#include "order/bucket_order.hpp"
#include "order/length_windows.hpp"
#include "shard/error.hpp"
#include "shard/loader/order.hpp"

namespace shard {

// Whether samples, shards or the samples of a window may be so few that their permutation was another one
// in earlier versions.
bool Order::permutes_few() const noexcept {
  const auto few = [](std::uint64_t n) { return n > 1 && n <= Permutation::kFew; };
  if (sampling_) return false;  // its own digest says what it draws
  const bool by_shard = options_.partition == Partition::by_shard;
  if (!by_shard && options_.order == OrderMode::sequential) return false;
  if (!by_shard && options_.order == OrderMode::shuffle) return few(samples_);
  if (few(shard_begin_.size() - 1)) return true;
  if (options_.order == OrderMode::sequential) return false;
  // With tail short the first and the last shard of a rank may be cut.
  if (by_shard && options_.tail == Tail::short_) return true;
  for (std::size_t i = 1; i < shard_begin_.size(); ++i)
    if (few(shard_begin_[i] - shard_begin_[i - 1])) return true;
  return false;
}

// Everything but seed and epoch that determines the sequence.
// drawn: the digest of the sampling, if there is one.
std::string Order::described(std::uint64_t drawn) const {
  const bool windowed = options_.order == OrderMode::windowed;
  std::string text = fmt::format("mode {} tail {} partition {} window {}", static_cast<int>(options_.order),
                                 static_cast<int>(options_.tail), static_cast<int>(options_.partition),
                                 windowed ? options_.window_shards : 0);
  if (windowed || options_.partition == Partition::by_shard) {
    for (const std::uint64_t begin : shard_begin_) text += fmt::format(" {}", begin);
  }
  if (windows_) text += fmt::format(" sorted {}", to_hex(windows_->digest()));
  if (sampling_)
    text += fmt::format(" epoch {} repeats {} drawn {}", positions(), options_.repeats, to_hex(drawn));
  return text;
}

std::uint64_t Order::digest() const {
  if (buckets_) return xxh3(fmt::format("{} {}", to_hex(buckets_->digest()), to_hex(recipe_)));
  return xxh3(described(sampling_ ? sampling_->digest() : 0) + (permutes_few() ? " few 2" : ""));
}

std::uint64_t Order::earlier_digest() const {
  if (buckets_) return xxh3(fmt::format("{} {}", to_hex(buckets_->digest()), to_hex(recipe_)));
  return xxh3(described(sampling_ ? sampling_->earlier_digest() : 0));
}

namespace {

constexpr std::string_view kInputs = " inputs ";
constexpr std::string_view kViews = " views ";
constexpr std::string_view kNextViews = " next ";

// Takes what follows `word` from the end of a state. Empty: it has no such word.
std::string take_views(std::string_view& rest, std::string_view word) {
  const std::size_t at = rest.find(word);
  if (at == std::string_view::npos) return {};
  std::string views(rest.substr(at + word.size()));
  static_cast<void>(views_from_text(views));
  rest = rest.substr(0, at);
  return views;
}

}  // namespace

std::string LoaderState::serialize() const {
  std::string text = fmt::format("shard-loader 4 {} {} {} {} {} {} {} {} {}", seed, epoch, position, samples,
                                 global_batch, world_size, order, fingerprint, selection);
  if (inputs != 0) text.append(kInputs).append(to_hex(inputs));
  if (!views.empty()) text.append(kViews).append(views);
  if (!next_views.empty()) text.append(kNextViews).append(next_views);
  return text;
}

LoaderState LoaderState::parse(const std::string& text) {
  constexpr std::string_view kMagic = "shard-loader 4";
  constexpr std::string_view kWithoutViews = "shard-loader 3";
  constexpr std::string_view kWithoutSelection = "shard-loader 2";  // its states are of whole data sets
  if (text.starts_with("shard-loader 1 ")) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} is a loader state of an earlier version, which does not contain the order: "
                            "start the epoch again",
                            quoted(text.substr(0, 80))));
  }
  LoaderState state;
  std::uint64_t world = 0;
  std::string_view rest = text;
  const bool whole = rest.starts_with(kWithoutSelection);
  bool good = whole || rest.starts_with(kWithoutViews) || rest.starts_with(kMagic);
  if (rest.starts_with(kMagic)) {
    state.next_views = take_views(rest, kNextViews);
    state.views = take_views(rest, kViews);
  }
  rest.remove_prefix(good ? kMagic.size() : 0);
  for (std::uint64_t* field :
       {&state.seed, &state.epoch, &state.position, &state.samples, &state.global_batch, &world, &state.order,
        &state.fingerprint, &state.selection}) {
    if (whole && field == &state.selection) break;
    good = good && rest.starts_with(' ');
    if (!good) break;
    rest.remove_prefix(1);
    const auto number = take_number<std::uint64_t>(rest);
    good = number.has_value();
    *field = number.value_or(0);
  }
  if (good && rest.starts_with(kInputs)) {
    const std::optional<std::uint64_t> inputs = from_hex(rest.substr(kInputs.size()));
    good = inputs.has_value();
    state.inputs = inputs.value_or(0);
    rest = {};
  }
  if (!good || !rest.empty() || world < 1 || world > UINT32_MAX)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} is not a loader state (expected 'shard-loader 4', nine numbers, inputs and views)",
                    quoted(text.substr(0, 80))));
  state.world_size = static_cast<std::uint32_t>(world);
  return state;
}

}  // namespace shard
