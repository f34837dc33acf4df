// SHARD_EXACT and its kin, for private headers; a public header includes shard/host_device.hpp itself.
#pragma once

#include "shard/host_device.hpp"  // IWYU pragma: export
