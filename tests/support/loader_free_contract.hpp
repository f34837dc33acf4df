// What every device must keep with samples of any size; part of the loader's contract (loader_contract.hpp).
#pragma once

#include "loader_free/buckets.hpp"
#include "loader_free/mixes.hpp"
#include "loader_free/operations.hpp"
#include "loader_free/padded.hpp"
#include "loader_free/patches.hpp"
#include "loader_free/room.hpp"
#include "loader_free/views.hpp"
