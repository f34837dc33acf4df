// What a loader asks of its feeder arrives once, and in order.
#include "engine/mailbox.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace shard::testing {
namespace {

// Waits until another thread has done it; a test that hangs is stopped by its time limit.
void wait_for(const std::atomic<bool>& done) {
  while (!done) std::this_thread::yield();
}

TEST(Mailbox, GivesEachRunOnce) {
  Mailbox mailbox;
  mailbox.run({3, 7});
  const auto run = mailbox.next_run();
  ASSERT_TRUE(run);
  EXPECT_EQ(run->epoch, 3U);
  EXPECT_EQ(run->first_batch, 7U);
  EXPECT_FALSE(mailbox.stopping());
  mailbox.quit();
  EXPECT_FALSE(mailbox.next_run()) << "it was given before";
}

TEST(Mailbox, StopsARunThatTheFeederHasNotSeen) {
  Mailbox mailbox;
  mailbox.run({1, 0});
  mailbox.stop();
  EXPECT_TRUE(mailbox.next_run());
  EXPECT_TRUE(mailbox.stopping());
}

TEST(Mailbox, AForgottenStopDoesNotEndTheNextRun) {
  Mailbox mailbox;
  mailbox.stop();
  mailbox.run({1, 0});
  EXPECT_FALSE(mailbox.stopping());
}

// The loader drains the ring when wait_idle() returns: no run may be under way or about to start then.
TEST(Mailbox, WaitsForARunThatIsUnderWayOrAboutToStart) {
  Mailbox mailbox;
  mailbox.wait_idle();  // nothing was asked for
  std::atomic<bool> started{false};
  std::atomic<bool> over{false};
  mailbox.run({1, 0});
  std::thread feeder([&] {
    while (mailbox.next_run()) {
      started = true;
      while (!mailbox.stopping()) std::this_thread::yield();
      over = true;
    }
  });
  mailbox.stop();
  mailbox.wait_idle();
  EXPECT_TRUE(over) << "the run was asked for before";
  started = over = false;
  mailbox.run({2, 0});
  wait_for(started);
  EXPECT_FALSE(over);
  mailbox.stop();
  mailbox.wait_idle();
  EXPECT_TRUE(over);
  mailbox.quit();
  feeder.join();
}

}  // namespace
}  // namespace shard::testing
