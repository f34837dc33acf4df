// What every device must keep with samples of any size; part of the loader's contract (loader_contract.hpp).
#pragma once

#include "support/loader/free/buckets.hpp"
#include "support/loader/free/mixes.hpp"
#include "support/loader/free/operations.hpp"
#include "support/loader/free/padded.hpp"
#include "support/loader/free/patches.hpp"
#include "support/loader/free/room.hpp"
#include "support/loader/free/views.hpp"
