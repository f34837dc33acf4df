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

std::unique_ptr<Transport> make_transport(const TransportContext& context, std::string& reason) {
  switch (context.options->transport) {
    case TransportKind::mapped:
      reason = "asked for";
      return make_mapped(context);
    case TransportKind::staged:
      reason = "asked for";
      return make_staged(context);
    case TransportKind::direct:
      throw Error(ErrorCode::unsupported, "transport direct is not built yet: use mapped or staged");
    case TransportKind::automatic:
    case TransportKind::resident:
      break;  // resident: the link below it is chosen likewise
  }
  try {
    auto transport = make_mapped(context);
    reason = context.device->info().reads_host_memory ? "samples are read where they are mapped"
                                                      : "shards can be registered in place";
    return transport;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported && error.code() != ErrorCode::resource) throw;
    reason = fmt::format("not mapped: {}", error.what());
  }
  return make_staged(context);
}

}  // namespace shard
