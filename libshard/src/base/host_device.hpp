// SHARD_EXACT and SHARD_UNROLL, for private headers; a public header includes shard/host_device.hpp itself.
#pragma once

#include "shard/host_device.hpp"  // IWYU pragma: export
