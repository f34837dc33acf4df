// The memory of a slot, and where each tensor of a batch lies in it.
#pragma once

#include "setup/loader_setup.hpp"
#include "slot/slot.hpp"
#include "transport/memory_plan.hpp"

namespace shard {

// Allocates images, columns and verdict, and says in the slot where columns and fields are. Errors: resource.
void prepare_slot(Slot& slot, const LoaderSetup& setup, const SlotMemory& memory);

}  // namespace shard
