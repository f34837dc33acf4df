#include <fmt/format.h>

#include "shard/error.hpp"
#include "transport/transport.hpp"

namespace shard {

std::string_view to_string(TransportKind kind) noexcept {
  switch (kind) {
    case TransportKind::automatic:
      return "auto";
    case TransportKind::mapped:
      return "mapped";
    case TransportKind::staged:
      return "staged";
    case TransportKind::direct:
      return "direct";
    case TransportKind::resident:
      return "resident";
  }
  return "unknown";
}

namespace {

std::uint64_t shard_bytes(const Dataset& dataset) {
  std::uint64_t total = 0;
  for (const ShardSummary& shard : dataset.info().shards) total += shard.size_bytes;
  return total;
}

bool may_be_replaced(const Error& error) {
  return error.code() == ErrorCode::unsupported || error.code() == ErrorCode::resource;
}

// The transports in the order of their merit, with what speaks against those before the one taken.
std::unique_ptr<Transport> choose(const TransportContext& context, std::string& reason) {
  const bool in_place = context.device->info().reads_host_memory;
  const std::uint64_t total = shard_bytes(*context.dataset);
  const std::uint64_t memory = available_memory_bytes();
  const bool exceeds_memory = total > memory;
  std::string against;
  auto take = [&](const char* name, auto make, const std::string& why) -> std::unique_ptr<Transport> {
    try {
      auto transport = make();
      reason = against.empty() ? why : fmt::format("{}; {}", why, against);
      return transport;
    } catch (const Error& error) {
      if (!may_be_replaced(error)) throw;
      against += fmt::format("{}not {}: {}", against.empty() ? "" : "; ", name, error.what());
      return nullptr;
    }
  };
  auto mapped = [&] {
    return take(
        "mapped", [&] { return make_mapped(context); },
        in_place ? "samples are read where they are mapped" : "shards can be registered in place");
  };
  auto direct = [&] {
    std::string detail;
    auto transport = take(
        "direct", [&] { return make_direct(context, detail); },
        fmt::format("{} bytes of shards exceed the {} bytes of memory there are", total, memory));
    if (transport) reason += fmt::format(" ({})", detail);
    return transport;
  };
  std::unique_ptr<Transport> transport;
  if (in_place && exceeds_memory) transport = direct();  // pages would only pass through the cache
  if (!transport) transport = mapped();
  if (!transport && !in_place && exceeds_memory) transport = direct();
  if (transport) return transport;
  reason = against;
  return make_staged(context);
}

}  // namespace

std::unique_ptr<Transport> make_transport(const TransportContext& context, std::string& reason) {
  std::string detail;
  std::unique_ptr<Transport> transport;
  reason = "asked for";
  switch (context.options->transport) {
    case TransportKind::mapped:
      return make_mapped(context);
    case TransportKind::staged:
      return make_staged(context);
    case TransportKind::direct:
      transport = make_direct(context, detail);
      reason += fmt::format("; {}", detail);
      return transport;
    case TransportKind::automatic:
    case TransportKind::resident:
      break;  // resident: the link below it is chosen likewise
  }
  return choose(context, reason);
}

}  // namespace shard
