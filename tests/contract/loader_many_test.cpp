// Several loaders at once: on one data set and one device from several threads, and from several processes on
// the same shards.
#include <sys/wait.h>
#include <unistd.h>

#include <numeric>
#include <thread>

#include "support/device/limited_device.hpp"
#include "support/expect_error.hpp"
#include "support/loader/loader_fixture.hpp"
#include "support/rounds.hpp"
#include "support/transform/random_work.hpp"

namespace shard::testing {
namespace {

constexpr int kGood = 42;

LoaderOptions options_of(std::uint64_t seed) {
  Random random(seed);
  LoaderOptions options;
  options.batch_size = 8;
  options.seed = seed;
  options.tail = Tail::pad;
  options.prefetch = random.between(1, 4);
  options.threads = random.between(1, 3);
  options.transport = random.one_of(
      {TransportKind::automatic, TransportKind::mapped, TransportKind::staged, TransportKind::resident});
  options.verify = random.one_of({Verify::never, Verify::always});
  return options;
}

// Runs epochs and counts each sample; what is wrong, or nothing.
std::string run_and_check(const Dataset& data, Device& device, Loader& loader, std::uint64_t epochs) {
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    std::vector<int> times(data.size(), 0);
    for (const Seen& seen : run_epoch(device, loader, epoch))
      for (std::size_t i = 0; i < seen.ids.size(); ++i) {
        const auto expected = sample_bytes(seen.ids[i], 360);
        if (std::memcmp(expected.data(), seen.images.data() + i * 360, 360) != 0)
          return "wrong bytes for sample " + std::to_string(seen.ids[i]);
        if (seen.labels[i] != static_cast<std::int64_t>(1000 + seen.ids[i]))
          return "wrong label for sample " + std::to_string(seen.ids[i]);
        times[seen.ids[i]] += seen.mask[i];
      }
    if (times != std::vector<int>(data.size(), 1)) return "a sample was left out or repeated";
  }
  return {};
}

class ManyLoaders : public ::testing::TestWithParam<bool> {  // whether the device stands for a GPU
 protected:
  void SetUp() override { write_dataset(dir_.path(), {}); }
  Dataset open_dataset() const { return Dataset::open(dir_.path()); }
  static std::shared_ptr<Device> make_device() {
    return GetParam() ? std::shared_ptr<Device>(make_gpu_like_device(2)) : make_host_device(2);
  }
  TempDir dir_;
};

TEST_P(ManyLoaders, ShareADataSetAndADeviceFromSeveralThreads) {
  const std::uint64_t count = rounds(10, 3);
  for (std::uint64_t round = 0; round < count; ++round) {
    const auto data = open_dataset();  // no shard is open yet: the threads open them together
    const auto device = make_device();
    std::vector<std::string> wrong(5);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < wrong.size(); ++i)
      threads.emplace_back([&, i] {
        try {
          const auto own = i % 2 == 0 ? device : make_device();
          Loader loader(data, own, options_of(first_seed() + round * 10 + i));
          wrong[i] = run_and_check(data, *own, loader, 2);
        } catch (const Error& error) {
          wrong[i] = error.what();
        }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, std::vector<std::string>(wrong.size()))
        << "SHARD_TEST_SEED=" << first_seed() + round * 10;
  }
}

TEST_P(ManyLoaders, StayApartWhenOneOfThemStops) {
  const auto data = open_dataset();
  const auto device = make_device();
  Loader stays(data, device, options_of(1));
  for (std::uint64_t seed = 2; seed < 12; ++seed) {
    Loader goes(data, device, options_of(seed));
    ASSERT_TRUE(goes.next());
    if (seed % 2 == 0) goes.cancel();
  }
  EXPECT_EQ(run_and_check(data, *device, stays, 2), "");
}

// The ranks of one process that has several devices: together they see each sample once.
TEST_P(ManyLoaders, OfAllRanksSeeEachSampleOnce) {
  const auto data = open_dataset();
  for (Partition partition : {Partition::global, Partition::by_shard}) {
    constexpr std::uint32_t kWorld = 4;
    std::vector<std::vector<std::uint64_t>> ids(kWorld);
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 0; rank < kWorld; ++rank)
      threads.emplace_back([&, rank] {
        LoaderOptions options = options_of(rank);
        options.seed = 9;
        options.batch_size = partition == Partition::global ? 2 : 41;
        options.partition = partition;
        options.rank = rank;
        options.world_size = kWorld;
        const auto device = make_device();
        Loader loader(data, device, options);
        for (const Seen& seen : run_epoch(*device, loader, 0))
          for (std::size_t i = 0; i < seen.ids.size(); ++i)
            if (seen.mask[i] != 0) ids[rank].push_back(seen.ids[i]);
      });
    for (std::thread& thread : threads) thread.join();
    std::vector<std::uint64_t> all;
    for (const auto& part : ids) all.insert(all.end(), part.begin(), part.end());
    std::sort(all.begin(), all.end());
    std::vector<std::uint64_t> each(data.size());
    std::iota(each.begin(), each.end(), std::uint64_t{0});
    EXPECT_EQ(all, each) << (partition == Partition::global ? "global" : "by_shard");
  }
}

TEST_P(ManyLoaders, ReadTheSameShardsFromSeveralProcesses) {
  std::vector<pid_t> children;
  for (std::uint64_t process = 0; process < 3; ++process) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      int result = 1;
      try {
        const auto data = open_dataset();
        const auto device = make_device();
        Loader loader(data, device, options_of(process));
        if (process == 2) ::_exit(loader.next() ? kGood : 1);  // one process ends in mid-epoch, as it is
        result = run_and_check(data, *device, loader, 3).empty() ? kGood : 1;
      } catch (...) {
      }
      ::_exit(result);
    }
    children.push_back(child);
  }
  const auto data = open_dataset();
  const auto device = make_device();
  Loader loader(data, device, options_of(7));
  EXPECT_EQ(run_and_check(data, *device, loader, 3), "");
  for (pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), kGood);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, ManyLoaders, ::testing::Values(false, true),
                         [](const auto& gpu_like) { return gpu_like.param ? "gpu_like" : "host"; });

}  // namespace
}  // namespace shard::testing
