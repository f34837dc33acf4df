// What a batch holds: a slot of the ring, given back once.
#pragma once

#include <memory>
#include <utility>

#include "shard/loader/loader.hpp"
#include "slot.hpp"

namespace shard {

struct Batch::Lease {
  Lease(std::shared_ptr<Ring> lent_ring, Slot* lent_slot, const SampleSpec& delivered)
      : ring(std::move(lent_ring)), slot(lent_slot), spec(delivered) {}
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease();
  void release(void* native_stream);

  std::shared_ptr<Ring> ring;
  Slot* slot;
  SampleSpec spec;
};

}  // namespace shard
