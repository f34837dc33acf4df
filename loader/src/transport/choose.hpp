// Which transport a loader uses.
#pragma once

#include <cstdint>
#include <vector>

#include "shard/loader/loader.hpp"

namespace shard {

class Error;

// Where samples come from.
enum class SampleSource : std::uint8_t { files, server, images };
// images: some of them are not converted.
SampleSource source_of(const Dataset& dataset) noexcept;

// The transports to try for LoaderOptions::transport, in this order. automatic and resident: the best first,
// staged last. `available_bytes`: of host memory. What does not come from files is only staged; throws
// invalid_argument if mapped or direct are asked for it.
std::vector<TransportKind> transports_to_try(const DatasetInfo& info, const DeviceInfo& device,
                                             const LoaderOptions& options, std::uint64_t available_bytes,
                                             SampleSource source = SampleSource::files);

// Whether the next transport of the list may be tried after this error.
bool may_be_replaced(const Error& error) noexcept;

}  // namespace shard
