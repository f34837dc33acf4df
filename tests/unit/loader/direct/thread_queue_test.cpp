// Queues of reads, with threads and with io_uring.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <vector>

#include "base/unique_handle.hpp"
#include "shard/error.hpp"
#include "shard/loader/direct_reads.hpp"
#include "support/rounds.hpp"
#include "support/temp_dir.hpp"

namespace shard::testing {
namespace {

// With io_uring and with threads.
class ReadQueues : public ::testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<ReadQueue> make() const { return GetParam() ? make_uring_queue(4) : make_thread_queue(3); }
};

TEST_P(ReadQueues, LeaveRequestsAloneAfterTheyWereDrained) {
  TempDir dir;
  std::ofstream(dir.path() / "file") << std::string(std::size_t{1} << 20U, 'x');
  const UniqueFd file(::open((dir.path() / "file").c_str(), O_RDONLY | O_CLOEXEC));
  for (std::uint64_t round = 0; round < rounds(15, 5); ++round) {
    std::unique_ptr<ReadQueue> queue;
    try {
      queue = make();
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
    std::vector<ReadRequest> requests(20);  // more than the kernel takes at once
    std::vector<std::vector<std::byte>> memory(requests.size(),
                                               std::vector<std::byte>(std::size_t{1} << 20U));
    for (std::size_t i = 0; i < requests.size(); ++i) {
      requests[i].descriptor = file.get();
      requests[i].target = memory[i].data();
      requests[i].size_bytes = 1U << 20U;
      queue->start(requests[i]);
    }
    if (round % 3 != 0) queue->flush();
    for (std::uint64_t i = 0; i < round % 5; ++i) EXPECT_EQ(queue->next_done().result, 1 << 20);
    queue->drain();
    for (std::vector<std::byte>& bytes : memory) std::memset(bytes.data(), 'y', bytes.size());
    queue.reset();
    for (const std::vector<std::byte>& bytes : memory)
      ASSERT_EQ(std::count(bytes.begin(), bytes.end(), std::byte{'y'}), 1 << 20);
  }
}

INSTANTIATE_TEST_SUITE_P(Queues, ReadQueues, ::testing::Bool(),
                         [](const auto& uring) { return uring.param ? "uring" : "threads"; });

// In a process of its own, whose memory has no room for another thread's stack.
TEST(ThreadQueue, SaysWhichThreadCouldNotBeStarted) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs memory without limit";
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int code = 1;
    const rlimit limit{std::uint64_t{1} << 20U, RLIM_INFINITY};  // less than is in use
    if (::setrlimit(RLIMIT_AS, &limit) == 0) {
      try {
        make_thread_queue(32);
      } catch (const Error& error) {
        const bool named = std::string(error.what()).find("cannot start reading thread") != std::string::npos;
        code = error.code() == ErrorCode::resource && named ? 0 : 2;
      }
    }
    ::_exit(code);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace shard::testing
