// What a batch holds: a slot of the ring, given back once.
#pragma once

#include <memory>
#include <utility>

#include "shard/loader/loader.hpp"
#include "slot.hpp"

namespace shard {

struct Batch::Lease {
  Lease(std::shared_ptr<Ring> lent_ring, Slot* lent_slot, const SampleSpec& delivered,
        std::shared_ptr<const Dataset> data)
      : ring(std::move(lent_ring)),
        slot(lent_slot),
        spec(delivered),
        dataset(std::move(data)),
        size(slot->indices.samples.size()),
        epoch(slot->epoch),
        index(slot->index) {}
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease();
  void release(void* native_stream);
  // Throws invalid_argument after release().
  Slot& held() const;

  std::shared_ptr<Ring> ring;
  Slot* slot;  // null after release()
  SampleSpec spec;
  std::shared_ptr<const Dataset> dataset;  // to name a shard whose pages went away
  std::uint64_t size;
  std::uint64_t epoch;
  std::uint64_t index;
};

}  // namespace shard
