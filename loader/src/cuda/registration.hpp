// Page-locked ranges of mapped files, shared by all loaders of the process.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "shard/loader/device.hpp"

namespace shard {

// DeviceInfo::registration_piece_bytes.
inline constexpr std::size_t kRegistrationPiece = std::size_t{64} << 20U;

// With the flags of cudaHostRegister; on the current device. Thread safe. Errors: resource, unsupported.
std::unique_ptr<Registration> register_shared(std::span<const std::byte> range, unsigned flags);

}  // namespace shard
