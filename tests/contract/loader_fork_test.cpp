// fork() after opening: every call in the child is refused or does nothing, none hangs, and the parent goes
// on.
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

#include "support/expect_error.hpp"
#include "support/loader/loader_fixture.hpp"
#include "support/rounds.hpp"

namespace shard::testing {
namespace {

constexpr int kGood = 42;

// What `body` returned in a child; -1: it did not end (and was killed), or died.
int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  const int descriptor = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  pollfd ended{descriptor, POLLIN, 0};
  if (::poll(&ended, 1, 20'000) != 1) ::kill(child, SIGKILL);
  ::close(descriptor);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool refuses(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code() == ErrorCode::unsupported &&
           std::string(error.what()).find("another process") != std::string::npos;
  }
  return false;
}

// The allocators of AddressSanitizer and ThreadSanitizer (g++ 12) have locks that fork() does not take: a
// child that allocates finds one held for ever when a thread of its parent was allocating. (glibc's
// allocator takes its own.)
#define SKIP_IF_THE_ALLOCATOR_DOES_NOT_SURVIVE_FORK() \
  if (kSanitized) GTEST_SKIP() << "a sanitizer's allocator keeps its locks over fork()"

class ForkedLoader : public ::testing::TestWithParam<TransportKind> {
 protected:
  void SetUp() override {
    write_dataset(dir_.path(), {});
    data_ = Dataset::open(dir_.path());
    device_ = make_host_device(2);
    options_.batch_size = 8;
    options_.prefetch = 2;
    options_.threads = 2;
    options_.transport = GetParam();
    try {
      loader_.emplace(*data_, device_, options_);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported || GetParam() != TransportKind::direct) throw;
      GTEST_SKIP() << error.what();
    }
  }

  TempDir dir_;
  std::optional<Dataset> data_;
  std::shared_ptr<Device> device_;
  LoaderOptions options_;
  std::optional<Loader> loader_;
};

TEST_P(ForkedLoader, RefusesEveryCallInTheChild) {
  SKIP_IF_THE_ALLOCATOR_DOES_NOT_SURVIVE_FORK();
  auto batch = loader_->next();
  const LoaderState state = loader_->state();
  const std::function<void()> calls[] = {[&] { loader_->next(); },   [&] { loader_->start_epoch(1); },
                                         [&] { loader_->epoch(0); }, [&] { loader_->resume(state); },
                                         [&] { loader_->stats(); },  [&] { loader_->state(); },
                                         [&] { batch->wait(); }};
  for (std::size_t i = 0; i < std::size(calls); ++i)
    EXPECT_EQ(in_child([&] { return refuses(calls[i]) ? kGood : 1; }), kGood) << "call " << i;
  std::uint64_t more = 1;
  for (batch.reset(); (batch = loader_->next()); ++more) look(*device_, *batch);
  EXPECT_EQ(more, loader_->batches_per_epoch());  // the parent was not disturbed
}

// Whatever the parent's threads were at when it forked; mutexes that they held stay locked in the child.
TEST_P(ForkedLoader, EndsInTheChildAtAnyMoment) {
  SKIP_IF_THE_ALLOCATOR_DOES_NOT_SURVIVE_FORK();
  auto held = loader_->next();
  std::atomic<bool> finished{false};
  std::atomic<std::uint64_t> epochs{0};
  std::thread consumer([&] {
    for (std::uint64_t epoch = 0; !finished; ++epoch, ++epochs) {
      loader_->start_epoch(epoch);
      while (auto batch = loader_->next()) look(*device_, *batch);
    }
  });
  const std::uint64_t count = rounds(60, 60);
  for (std::uint64_t i = 0; i < count; ++i) {
    EXPECT_EQ(in_child([&] {
                const bool good = refuses([&] { loader_->stats(); }) && refuses([&] { loader_->next(); }) &&
                                  refuses([&] { loader_->epoch(epochs); });
                loader_->cancel();
                held.reset();
                loader_.reset();
                data_.reset();
                device_.reset();
                return good ? kGood : 1;
              }),
              kGood)
        << "fork " << i;
  }
  while (epochs == 0) std::this_thread::yield();  // the parent goes on
  finished = true;
  consumer.join();
}

TEST_P(ForkedLoader, LeavesBatchesAndDevicesDestructibleInTheChild) {
  SKIP_IF_THE_ALLOCATOR_DOES_NOT_SURVIVE_FORK();
  auto batch = loader_->next();
  EXPECT_EQ(in_child([&] {
              batch.reset();
              loader_.reset();
              return kGood;
            }),
            kGood);
  loader_.reset();  // from here on the batch alone holds ring and device
  data_.reset();
  device_.reset();
  EXPECT_EQ(in_child([&] {
              batch.reset();
              return kGood;
            }),
            kGood);
}

INSTANTIATE_TEST_SUITE_P(Transports, ForkedLoader,
                         ::testing::Values(TransportKind::mapped, TransportKind::staged,
                                           TransportKind::resident, TransportKind::direct),
                         [](const auto& kind) { return std::string(to_string(kind.param)); });

// A device alone, without a loader: its threads are not in the child.
TEST(ForkedDevice, IsDestructibleInTheChild) {
  auto device = make_host_device(3);
  auto stream = device->create_stream();
  EXPECT_EQ(in_child([&] {
              stream.reset();
              device.reset();
              return kGood;
            }),
            kGood);
  stream->synchronize();
}

// Shards opened before fork() may be read in the child, by a loader that is made there.
TEST(ForkedDataset, ServesALoaderThatIsMadeInTheChild) {
  TempDir dir;
  write_dataset(dir.path(), {});
  const auto data = Dataset::open(dir.path());
  for (std::uint32_t shard = 0; shard < 4; ++shard) data.shard(shard);
  EXPECT_EQ(in_child([&] {
              LoaderOptions options;
              options.batch_size = 8;
              const auto device = make_host_device(2);
              Loader loader(data, device, options);
              for (const Seen& seen : run_epoch(*device, loader, 0))
                for (std::size_t i = 0; i < seen.ids.size(); ++i) {
                  const auto expected = sample_bytes(seen.ids[i], 360);
                  if (std::memcmp(expected.data(), seen.images.data() + i * 360, 360) != 0) return 1;
                }
              return kGood;
            }),
            kGood);
}

// The child is forked while other threads are opening shards: it finds no lock that nobody will release.
TEST(ForkedDataset, OpensAShardThatAThreadOfTheParentWasOpening) {
  SKIP_IF_THE_ALLOCATOR_DOES_NOT_SURVIVE_FORK();
  const TempDir dir;
  DatasetShape shape;
  shape.spec = {DType::u8, Layout::nhwc, 1, 1, 4};
  shape.shards = {40'000, 40'000};  // a head that takes a while
  write_dataset(dir.path(), shape);
  for (std::uint64_t round = 0; round < rounds(20, 20); ++round) {
    const Dataset data = Dataset::open(dir.path());
    std::atomic<int> begun{0};
    std::vector<std::thread> threads;
    for (std::uint32_t shard : {0U, 1U})
      threads.emplace_back([&, shard] {
        ++begun;
        static_cast<void>(data.shard(shard));
      });
    while (begun < 2) std::this_thread::yield();
    EXPECT_EQ(in_child([&] {
                return data.shard(0).label(7) == 1007 && data.shard(1).label(7) == 41'007 ? kGood : 1;
              }),
              kGood);
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace shard::testing
