#include "transport/choose.hpp"

#include <fmt/format.h>

#include "shard/error.hpp"
#include "transport/transport.hpp"

namespace shard {

std::string_view to_string(TransportKind kind) noexcept {
  return words_of(kind)[static_cast<std::size_t>(kind)];
}

SampleSource source_of(const Dataset& dataset) noexcept {
  if (dataset.is_unconverted()) return SampleSource::images;
  return dataset.is_remote() ? SampleSource::server : SampleSource::files;
}

std::vector<TransportKind> transports_to_try(const DatasetInfo& info, const DeviceInfo& device,
                                             const LoaderOptions& options, std::uint64_t available_bytes,
                                             SampleSource source) {
  using enum TransportKind;
  if (source == SampleSource::images && (options.transport == mapped || options.transport == direct))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("transport {} needs shards, and images of this data set are not converted: use "
                            "auto or staged, or convert them",
                            to_string(options.transport)));
  const bool remote = source == SampleSource::server;
  if (remote && (options.transport == mapped || options.transport == direct))
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format(
            "transport {} needs files, and shards of this data set are on a server: use auto or staged until "
            "all of them are in the cache",
            to_string(options.transport)));
  if (source != SampleSource::files) return {staged};
  if (options.transport != automatic && options.transport != resident) return {options.transport};
  if (shard_bytes(info) <= available_bytes) return {mapped, staged};
  // If the device read samples where they are mapped, their pages would pass through the cache without use.
  if (device.reads_host_memory) return {direct, mapped, staged};
  return {mapped, direct, staged};
}

bool may_be_replaced(const Error& error) noexcept {
  return error.code() == ErrorCode::unsupported || error.code() == ErrorCode::resource;
}

namespace {

std::unique_ptr<Transport> make(TransportKind kind, const TransportContext& context, std::string& detail) {
  switch (kind) {
    case TransportKind::mapped:
      return make_mapped(context);
    case TransportKind::direct:
      return make_direct(context, detail);
    default:
      return make_staged(context);
  }
}

}  // namespace

std::unique_ptr<Transport> make_transport(const TransportContext& context, std::string& reason) {
  const DatasetInfo& info = context.dataset->info();
  const std::uint64_t memory = available_memory_bytes();
  const SampleSource source = source_of(*context.dataset);
  const std::vector<TransportKind> kinds =
      transports_to_try(info, context.device->info(), *context.options, memory, source);
  std::string against;  // why the transports before it were not possible
  for (const TransportKind kind : kinds) {
    std::string detail;
    std::unique_ptr<Transport> transport;
    try {
      transport = make(kind, context, detail);
    } catch (const Error& error) {
      if (kind == kinds.back() || !may_be_replaced(error)) throw;
      against += fmt::format("{}not {}: {}", against.empty() ? "" : "; ", to_string(kind), error.what());
      continue;
    }
    if (source != SampleSource::files) {
      reason = source == SampleSource::server ? "shards are on a server" : "images are not converted";
    } else if (kinds.size() == 1) {
      reason = detail.empty() ? "asked for" : fmt::format("asked for; {}", detail);
    } else if (kind == TransportKind::staged) {
      reason = against;
    } else {
      reason = kind == TransportKind::direct
                   ? fmt::format("{} bytes of shards exceed the {} bytes of available memory",
                                 shard_bytes(info), memory)
               : context.device->info().reads_host_memory ? "samples are read where they are mapped"
                                                          : "shards can be registered in place";
      if (!against.empty()) reason += "; " + against;
      if (!detail.empty()) reason += fmt::format(" ({})", detail);
    }
    const std::string& note = context.device->info().copy_note;
    if (!note.empty()) reason += "; " + note;
    return transport;
  }
  return nullptr;  // not reached: the last one is made or throws
}

}  // namespace shard
