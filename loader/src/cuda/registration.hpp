// Page-locked ranges of mapped files, shared by all loaders of the process.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <stop_token>

#include "cuda/context.hpp"
#include "shard/loader/device.hpp"

namespace shard {

// DeviceInfo::registration_piece_bytes. It is locked in less time than the copies of two large batches take.
inline constexpr std::size_t kRegistrationPiece = std::size_t{16} << 20U;

// `flags`: those of cudaHostRegister. `stop` cancels it before it starts. Thread safe. Errors: resource,
// unsupported, cancelled.
std::unique_ptr<Registration> register_shared(const CudaContext& context, std::span<const std::byte> range,
                                              unsigned flags, const std::stop_token& stop);

}  // namespace shard
