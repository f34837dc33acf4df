// Which transport a loader takes.
#pragma once

#include <cstdint>
#include <vector>

#include "shard/loader/loader.hpp"

namespace shard {

class Error;

// What LoaderOptions::transport asks for, in the order in which it is tried; automatic and resident: the
// transports in the order of their merit, staged last. `available_bytes`: of host memory.
std::vector<TransportKind> transports_to_try(const DatasetInfo& info, const DeviceInfo& device,
                                             const LoaderOptions& options, std::uint64_t available_bytes);

// The next transport of the list may be tried after this error.
bool may_be_replaced(const Error& error) noexcept;

}  // namespace shard
