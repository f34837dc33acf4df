// Which transport a loader uses.
#pragma once

#include <cstdint>
#include <vector>

#include "shard/loader/loader.hpp"

namespace shard {

class Error;

// The transports to try for LoaderOptions::transport, in this order. automatic and resident: the best first,
// staged last. `available_bytes`: of host memory. `remote`: Dataset::is_remote(), for which there is only
// staged; throws invalid_argument if mapped or direct are asked for.
std::vector<TransportKind> transports_to_try(const DatasetInfo& info, const DeviceInfo& device,
                                             const LoaderOptions& options, std::uint64_t available_bytes,
                                             bool remote = false);

// Whether the next transport of the list may be tried after this error.
bool may_be_replaced(const Error& error) noexcept;

}  // namespace shard
