#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "cli/progress.hpp"
#include "cli/run_main.hpp"

namespace shard::cli {
namespace {

TEST(Progress, PrintsNothingWhenQuietButNotesAlways) {
  ::testing::internal::CaptureStderr();
  {
    Progress progress(ProgressMode::quiet);
    EXPECT_FALSE(progress.due());
    progress.update("working");
    progress.note("a warning");
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "a warning\n");
}

TEST(Progress, MayBeUpdatedFromManyThreads) {
  ::testing::internal::CaptureStderr();
  {
    Progress progress;
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) progress.update("line");
      });
    }
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");  // nothing is due within 5 seconds
}

}  // namespace
}  // namespace shard::cli
