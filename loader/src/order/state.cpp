#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "shard/error.hpp"
#include "shard/loader/order.hpp"

namespace shard {

std::string LoaderState::serialize() const {
  return fmt::format("shard-loader 1 {} {} {} {} {} {}", seed, epoch, position, samples, global_batch, world);
}

LoaderState LoaderState::parse(const std::string& text) {
  constexpr std::string_view kMagic = "shard-loader 1";
  LoaderState state;
  std::uint64_t world = 0;
  std::string_view rest = text;
  bool good = rest.starts_with(kMagic);
  rest.remove_prefix(good ? kMagic.size() : 0);
  for (std::uint64_t* field :
       {&state.seed, &state.epoch, &state.position, &state.samples, &state.global_batch, &world}) {
    good = good && rest.starts_with(' ');
    if (!good) break;
    auto [end, error] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), *field);
    good = error == std::errc{};
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  }
  if (!good || !rest.empty() || world < 1 || world > UINT32_MAX)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}' is not a loader state (expected 'shard-loader 1' and six numbers)",
                            text.substr(0, 80)));
  state.world = static_cast<std::uint32_t>(world);
  return state;
}

}  // namespace shard
