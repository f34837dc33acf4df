// The states of a slot: who gets it next, and what ends every wait.
#include "slot/ring.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <vector>

#include "support/device/step_device.hpp"

namespace shard::testing {
namespace {

class RingTest : public ::testing::Test {
 protected:
  Slot* acquire_and_push() {
    Slot* const slot = ring_.acquire();
    ring_.push_ready(slot);
    return slot;
  }
  Slot* pop() {
    Slot* slot = nullptr;
    EXPECT_EQ(ring_.pop_ready(slot, batch_), Ring::Pop::slot);
    return slot;
  }

  std::shared_ptr<StepDevice> device_ = std::make_shared<StepDevice>();
  std::unique_ptr<Stream> stream_ = device_->create_stream();
  Ring ring_{device_, 3};
  std::size_t batch_ = 0;  // of the slot that was popped
};

TEST_F(RingTest, HandsOutSlotsInTheOrderInWhichTheyBecameReady) {
  Slot* const first = acquire_and_push();
  Slot* const second = acquire_and_push();
  EXPECT_NE(first, second);
  EXPECT_EQ(pop(), first);
  EXPECT_EQ(pop(), second);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(ring_.slots()[i].number, i);
}

TEST_F(RingTest, SaysThatAllSlotsAreLentInsteadOfWaitingForever) {
  for (int i = 0; i < 3; ++i) acquire_and_push();
  Slot* const first = pop();
  pop();
  pop();
  Slot* none = nullptr;
  EXPECT_EQ(ring_.pop_ready(none, batch_), Ring::Pop::all_lent);
  EXPECT_EQ(none, nullptr);
  EXPECT_TRUE(ring_.wait_ready(std::chrono::milliseconds(0)));
  EXPECT_EQ(ring_.try_acquire(), nullptr);
  ring_.give_back(first, {});
  EXPECT_EQ(ring_.acquire(), first);
}

TEST_F(RingTest, TakesNoSlotAtOnceWhoseReaderIsStillAtIt) {
  for (int i = 0; i < 3; ++i) acquire_and_push();
  Slot* const slot = pop();
  std::byte byte{};
  const CopyItem copy{&byte, &byte, 0};
  stream_->copy({&copy, 1});
  const Event reader = stream_->record();
  ring_.give_back(slot, {reader});
  EXPECT_EQ(ring_.try_acquire(), nullptr);
  device_->step_to(reader);
  EXPECT_EQ(ring_.try_acquire(), slot);
}

TEST_F(RingTest, EndsAllWaitsWhenStoppedAndBeginsAgainDrained) {
  Slot* const ready = acquire_and_push();
  Slot* slot = nullptr;
  ring_.stop();
  EXPECT_EQ(ring_.acquire(), nullptr);
  EXPECT_EQ(ring_.try_acquire(), nullptr);
  EXPECT_EQ(ring_.pop_ready(slot, batch_), Ring::Pop::stopped);
  ring_.drain();
  EXPECT_FALSE(ring_.wait_ready(std::chrono::milliseconds(0))) << "what was ready is free again";
  std::vector<Slot*> free;
  for (int i = 0; i < 3; ++i) free.push_back(ring_.acquire());
  EXPECT_EQ(free.back(), ready) << "behind those that were free before";
}

TEST_F(RingTest, FailsForGoodWithTheFirstReason) {
  acquire_and_push();
  ring_.lost(std::make_exception_ptr(std::runtime_error("first")));
  ring_.lost(std::make_exception_ptr(std::runtime_error("second")));
  Slot* slot = nullptr;
  EXPECT_EQ(ring_.pop_ready(slot, batch_), Ring::Pop::failed);
  EXPECT_EQ(ring_.acquire(), nullptr);
  ring_.drain();
  EXPECT_EQ(ring_.acquire(), nullptr);
  EXPECT_THROW(
      {
        try {
          std::rethrow_exception(ring_.failure());
        } catch (const std::runtime_error& error) {
          EXPECT_STREQ(error.what(), "first");
          throw;
        }
      },
      std::runtime_error);
}

TEST_F(RingTest, KeepsTheMemoryOfLentSlotsOnlyWhenTheLoaderHasEnded) {
  for (Slot& slot : ring_.slots()) slot.images = device_->allocate_device(16);
  acquire_and_push();
  acquire_and_push();
  Slot* const lent = pop();
  ring_.retire();
  for (const Slot& slot : ring_.slots()) EXPECT_EQ(slot.images != nullptr, &slot == lent);
  ring_.give_back(lent, {});
  EXPECT_EQ(lent->images, nullptr);
}

class SlotOfSeveral : public RingTest {
 protected:
  // A ready slot of so many batches.
  Slot* push(std::size_t batches) {
    Slot* const slot = ring_.acquire();
    slot->batches = batches;
    ring_.push_ready(slot);
    return slot;
  }
};

TEST_F(SlotOfSeveral, IsHandedOutBatchByBatchAndIsFreeWhenAllAreBack) {
  Slot* const slot = push(3);
  Slot* const next = push(1);
  for (std::size_t batch = 0; batch < 3; ++batch) {
    EXPECT_EQ(pop(), slot);
    EXPECT_EQ(batch_, batch);
    if (batch == 0) ring_.give_back(slot, {});
  }
  EXPECT_EQ(pop(), next);
  Slot* const third = ring_.acquire();
  EXPECT_NE(third, slot);
  ring_.push_ready(third);
  ring_.give_back(slot, {});
  EXPECT_EQ(ring_.try_acquire(), nullptr) << "one of three batches is lent";
  ring_.give_back(slot, {});
  EXPECT_EQ(ring_.acquire(), slot);
}

TEST_F(SlotOfSeveral, IsFreeOnlyAfterTheReadersOfAllItsBatches) {
  std::byte byte{};
  const CopyItem copy{&byte, &byte, 0};
  std::vector<Event> readers;
  Slot* const slot = push(2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(pop(), slot);
    stream_->copy({&copy, 1});
    readers.push_back(stream_->record());
  }
  ring_.give_back(slot, {readers[1]});
  ring_.give_back(slot, {readers[0]});
  EXPECT_EQ(slot->released.size(), 2U);
  push(1);
  push(1);
  device_->step_to(readers[0]);
  EXPECT_EQ(ring_.try_acquire(), nullptr);
  device_->step_to(readers[1]);
  EXPECT_EQ(ring_.try_acquire(), slot);
}

TEST_F(SlotOfSeveral, RecordsOneEventInAStreamThatReadsThemOnceAllAreBack) {
  std::byte byte{};
  const CopyItem copy{&byte, &byte, 0};
  const std::unique_ptr<Stream> other = device_->create_stream();
  Slot* const slot = push(3);
  for (int i = 0; i < 3; ++i) pop();
  ring_.give_back(slot, {}, std::vector<StreamRef>{*stream_});
  ring_.give_back(slot, {}, std::vector<StreamRef>{*stream_, *other});
  EXPECT_TRUE(slot->readers.empty());
  stream_->copy({&copy, 1});  // before the event, although two batches are back
  ring_.give_back(slot, {});
  EXPECT_EQ(slot->released.size(), 2U) << "one for each stream";
  push(1);
  push(1);
  EXPECT_EQ(ring_.try_acquire(), nullptr);
  for (const Event& event : slot->released) device_->step_to(event);
  EXPECT_EQ(ring_.try_acquire(), slot);
  EXPECT_TRUE(slot->reading.empty());
}

TEST_F(SlotOfSeveral, RecordsInAStreamThatReadsThemAlsoIfTheRestIsNotWanted) {
  Slot* const slot = push(3);
  pop();
  pop();
  ring_.give_back(slot, {}, std::vector<StreamRef>{*stream_});
  ring_.give_back(slot, {});
  EXPECT_TRUE(slot->released.empty());
  ring_.stop();
  ring_.drain();
  EXPECT_EQ(slot->released.size(), 2U) << "and the event of what was not handed out";
}

TEST_F(SlotOfSeveral, KnowsWhichStreamsWaitUntilItIsFree) {
  const std::unique_ptr<Stream> other = device_->create_stream();
  Slot* const slot = push(2);
  pop();
  ring_.waits(*slot, *stream_);
  EXPECT_TRUE(ring_.is_waiting(*slot, *stream_));
  EXPECT_FALSE(ring_.is_waiting(*slot, *other));
  ring_.give_back(slot, {});
  EXPECT_TRUE(ring_.is_waiting(*slot, *stream_));
  pop();
  ring_.give_back(slot, {});
  EXPECT_FALSE(ring_.is_waiting(*slot, *stream_));
}

TEST_F(SlotOfSeveral, HandsOutItsErrorBehindItsBatches) {
  Slot* const slot = ring_.acquire();
  slot->batches = 1;
  slot->error = std::make_exception_ptr(std::runtime_error("the second"));
  ring_.push_ready(slot);
  EXPECT_EQ(pop(), slot);
  EXPECT_EQ(batch_, 0U);
  ring_.give_back(slot, {});
  EXPECT_EQ(pop(), slot);
  EXPECT_EQ(batch_, slot->batches);
  ring_.give_back(slot, {});
  for (int i = 0; i < 3; ++i) EXPECT_NE(ring_.acquire(), nullptr);
}

TEST_F(SlotOfSeveral, IsFreeOnceTheLentOnesAreBackIfTheRestIsNotWanted) {
  Slot* const slot = push(3);
  Slot* const unread = push(3);
  pop();
  pop();
  ring_.give_back(slot, {});
  ring_.stop();
  EXPECT_FALSE(*slot->unwanted);
  EXPECT_TRUE(*unread->unwanted);
  ring_.drain();
  ring_.acquire();
  EXPECT_EQ(ring_.acquire(), unread);
  EXPECT_EQ(ring_.try_acquire(), nullptr) << "a batch of the first slot is lent";
  ring_.give_back(slot, {});
  EXPECT_EQ(ring_.acquire(), slot);
}

TEST_F(SlotOfSeveral, KeepsItsMemoryUntilTheLastLentBatchIsBack) {
  for (Slot& slot : ring_.slots()) slot.images = device_->allocate_device(16);
  Slot* const slot = push(3);
  pop();
  pop();
  ring_.retire();
  ring_.give_back(slot, {});
  EXPECT_NE(slot->images, nullptr);
  ring_.give_back(slot, {});
  EXPECT_EQ(slot->images, nullptr);
}

}  // namespace
}  // namespace shard::testing
