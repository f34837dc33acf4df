// What a batch holds: a slot of the ring, or the part of it that is this batch. It is given back once, and
// used again after the work in all streams that the batch was handed to.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shard/loader/loader.hpp"
#include "slot/ring.hpp"

namespace shard {

// A slot that is lent to a consumer. A batch and the DLPack tensors made from it share it; the last of them
// gives it back. Thread safe.
class LentSlot {
 public:
  // `batch`: which of the slot.
  LentSlot(std::shared_ptr<Ring> ring, Slot* slot, std::size_t batch, Dataset dataset)
      : ring_(std::move(ring)),
        slot_(slot),
        first_(slot->first_row(batch)),
        end_(slot->ends[batch]),
        batch_(batch),
        index_(slot->index + batch),
        dataset_(std::move(dataset)) {}
  LentSlot(const LentSlot&) = delete;
  LentSlot& operator=(const LentSlot&) = delete;
  // The loader's next call throws errors of give_back().
  ~LentSlot();

  Slot& slot() const noexcept { return *slot_; }
  // Its rows of the slot are [first_row(), first_row() + rows()).
  std::size_t first_row() const noexcept { return first_; }
  std::size_t rows() const noexcept { return end_ - first_; }
  // Which batch of the slot it is.
  std::size_t batch() const noexcept { return batch_; }
  // Its position among the batches of the epoch.
  std::uint64_t index() const noexcept { return index_; }
  Device& device() const noexcept { return ring_->device(); }
  void wait();
  bool wait_ready(std::chrono::milliseconds timeout) const;
  void wait_on(StreamRef stream);
  void remember(StreamRef stream);
  // wait(), unless somebody waited before.
  void wait_unless_ordered();
  // The text column `name` of each sample. Errors: those of Dataset::text().
  std::vector<std::string> texts(std::string_view name) const;
  // Throws: the batch has no tensor of this name.
  [[noreturn]] void refuse_column(std::string_view name) const;
  // The consumer no longer uses the slot. Throws the error because of which the slot cannot be used again.
  void give_back();

 private:
  // The error that is being handled, naming the shard; the loader's next() throws it too.
  [[noreturn]] void rethrow_to_loader();
  void remember_locked(StreamRef stream);
  void check_verdict() const;

  const std::shared_ptr<Ring> ring_;
  Slot* slot_;  // null: given back
  const std::size_t first_;
  const std::size_t end_;
  const std::size_t batch_;
  const std::uint64_t index_;
  const Dataset dataset_;  // for texts, and to name a shard whose file was cut
  std::mutex mutex_;
  std::vector<StreamRef> streams_;  // whose work may read the slot; guarded by mutex_
  bool waited_ = false;             // by the host or a stream; guarded by mutex_
};

struct Batch::Lease {
  Lease(std::shared_ptr<Ring> ring, Slot* slot, std::size_t batch, Dataset data)
      : specs(slot->delivered),
        tokens(slot->tokens),
        epoch(slot->epoch),
        lent(std::make_shared<LentSlot>(std::move(ring), slot, batch, std::move(data))),
        size(lent->rows()),
        index(lent->index()) {}
  // Throws invalid_argument after release().
  LentSlot& held() const;
  // Throws not_found.
  const SlotColumn& column(std::string_view name, std::size_t view) const;

  std::vector<SampleSpec> specs;                   // by view
  std::vector<std::vector<std::uint32_t>> tokens;  // by view: of patches (BatchView::tokens); else empty
  std::uint64_t epoch;
  std::shared_ptr<LentSlot> lent;  // null after release()
  std::uint64_t size;
  std::uint64_t index;
};

}  // namespace shard
