// What cannot be had: registrations, pinned and device memory, descriptors, address space, threads. The next
// transport with its reason, or a clear error; nothing left behind either way.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "support/deadline.hpp"
#include "support/device/limited_device.hpp"
#include "support/expect_error.hpp"
#include "support/loader/loader_fixture.hpp"
#include "support/process_use.hpp"
#include "support/rounds.hpp"

namespace shard::testing {
namespace {

class LoaderRefusals : public ::testing::Test {
 protected:
  void SetUp() override { write_dataset(dir_.path(), {}); }

  Dataset open_dataset() const { return Dataset::open(dir_.path()); }
  static LoaderOptions options(TransportKind kind) {
    LoaderOptions options;
    options.transport = kind;
    options.batch_size = 8;
    options.threads = 2;
    options.prefetch = 2;
    options.transform.flip = 1;  // a transform: raw samples need device memory of their own
    options.transform.layout = Layout::nchw;
    return options;
  }
  static void expect_nothing_left(const LimitedDevice& device) {
    for (DeviceCall call : kDeviceCalls) EXPECT_EQ(device.alive(call), 0) << to_string(call);
    EXPECT_EQ(device.registered_bytes(), 0U);
    EXPECT_EQ(device.faults(), std::vector<std::string>{});
  }

  TempDir dir_;
};

TEST_F(LoaderRefusals, OfRegistrationLeadToStagedWithTheReason) {
  const auto data = open_dataset();
  const auto plain = make_gpu_like_device(1);
  Loader reference(data, plain, options(TransportKind::staged));
  const std::vector<Seen> expected = run_epoch(*plain, reference, 0);
  for (ErrorCode code : {ErrorCode::unsupported, ErrorCode::resource}) {
    auto device = make_gpu_like_device(1);
    device->refuse_from(DeviceCall::registration, 1, code);
    {
      Loader loader(data, device, options(TransportKind::automatic));
      EXPECT_EQ(to_string(loader.stats().transport), to_string(TransportKind::staged));
      EXPECT_NE(loader.stats().reason.find("not mapped: the test refuses registration"), std::string::npos)
          << loader.stats().reason;
      EXPECT_EQ(run_epoch(*device, loader, 0), expected);
    }
    EXPECT_SHARD_ERROR(Loader(data, device, options(TransportKind::mapped)), code,
                       "the test refuses registration");
    expect_nothing_left(*device);
  }
}

// A registration refused later: the samples of that shard are staged, every batch is right, and it is said.
TEST_F(LoaderRefusals, OfALaterRegistrationAreSaidAndTheShardIsStaged) {
  const auto data = open_dataset();
  const std::uint64_t all = 1 + data.info().shards.size();  // with the one when the loader is made
  for (ErrorCode code : {ErrorCode::unsupported, ErrorCode::resource})
    for (TransportKind kind : {TransportKind::automatic, TransportKind::mapped, TransportKind::resident})
      for (std::uint64_t k = 2; k <= all + 1; ++k) {
        SCOPED_TRACE(std::string(to_string(kind)) + ", registration " + std::to_string(k));
        const auto plain = make_gpu_like_device(1);
        Loader reference(data, plain, options(TransportKind::staged));
        auto device = make_gpu_like_device(1);
        device->refuse_from(DeviceCall::registration, k, code);
        {
          Loader loader(data, device, options(kind));
          EXPECT_EQ(loader.stats().reason.find("refuses"), std::string::npos) << loader.stats().reason;
          const std::string said = std::to_string(all + 1 - k) + " of 4 shards go through staging: the test";
          const auto tried_all = [&] {
            return k > all ? device->calls(DeviceCall::registration) == all
                           : loader.stats().reason.find(said) != std::string::npos;
          };
          std::uint64_t epoch = 0;
          for (const Deadline deadline; !tried_all() && !deadline.passed(); ++epoch)
            ASSERT_EQ(run_epoch(*device, loader, epoch), run_epoch(*plain, reference, epoch));
          // Again: what was refused is tried once more in a new epoch, and until then nothing is said.
          EXPECT_TRUE(comes_true(tried_all)) << loader.stats().reason;
          for (const std::uint64_t last = epoch + 2; epoch < last; ++epoch)
            ASSERT_EQ(run_epoch(*device, loader, epoch), run_epoch(*plain, reference, epoch));
          // Of what was refused one shard is tried again in each new epoch.
          EXPECT_LE(device->calls(DeviceCall::registration), k > all ? all : all + epoch);
        }
        expect_nothing_left(*device);
      }
}

// Memory and streams, at every call that asks for them: an error when the loader is made.
TEST_F(LoaderRefusals, OfMemoryAreErrorsWhenALoaderIsMade) {
  const auto data = open_dataset();
  for (TransportKind kind : {TransportKind::automatic, TransportKind::mapped, TransportKind::staged,
                             TransportKind::resident, TransportKind::direct})
    for (DeviceCall call : {DeviceCall::pinned, DeviceCall::device, DeviceCall::stream}) {
      std::uint64_t refused = 0;
      for (std::uint64_t k = 1;; ++k) {
        SCOPED_TRACE(std::string(to_string(kind)) + ", " + to_string(call) + " " + std::to_string(k));
        ASSERT_LT(k, 1000U);
        auto device = make_gpu_like_device(1);
        device->refuse_from(call, k, ErrorCode::resource);
        bool made = false;
        try {
          Loader loader(data, device, options(kind));
          made = true;
          EXPECT_LT(device->calls(call), k) << "a refusal was not noticed";
          std::size_t batches = 0;
          while (auto batch = loader.next()) ++batches;
          EXPECT_EQ(batches, 12U);
        } catch (const Error& error) {
          if (kind == TransportKind::direct && error.code() == ErrorCode::unsupported) break;
          EXPECT_FALSE(made) << "at start, not later";
          EXPECT_EQ(to_string(error.code()), to_string(ErrorCode::resource));
          EXPECT_NE(std::string(error.what()).find("the test refuses"), std::string::npos) << error.what();
          ++refused;
        }
        expect_nothing_left(*device);
        ASSERT_FALSE(HasFailure());
        if (made) {
          EXPECT_GT(refused, 0U);
          break;
        }
      }
    }
}

// A window of shards moves ahead of the order, and the budget holds at every moment.
TEST_F(LoaderRefusals, AreNotNeededWhereAWindowOfShardsFitsTheBudget) {
  TempDir dir;
  DatasetShape shape;
  shape.shards = {20, 21, 22, 23, 24, 25, 26, 27, 28};
  write_dataset(dir.path(), shape);
  const auto data = Dataset::open(dir.path());
  for (OrderMode mode : {OrderMode::windowed, OrderMode::sequential}) {
    LoaderOptions o = options(TransportKind::automatic);
    o.order = mode;
    o.window_shards = 2;
    o.tail = Tail::pad;
    auto unbounded = make_gpu_like_device(1);
    Loader reference(data, unbounded, o);
    o.memory.registered_bytes = 4 * (28 * 360 + 4096);  // two windows
    auto device = make_gpu_like_device(1);
    {
      Loader loader(data, device, o);
      EXPECT_EQ(to_string(loader.stats().transport), to_string(TransportKind::mapped))
          << loader.stats().reason;
      const auto both = [&] { return device->copies_in_place() > 0 && device->copies_from_pinned() > 0; };
      const Deadline deadline;
      for (std::uint64_t epoch = 0; (epoch < 3 || !both()) && !deadline.passed(); ++epoch)
        ASSERT_EQ(run_epoch(*device, loader, epoch), run_epoch(*unbounded, reference, epoch));
      EXPECT_TRUE(both());
    }
    EXPECT_LE(device->most_registered_bytes(), o.memory.registered_bytes);
    expect_nothing_left(*device);
  }
}

// Lowers a limit of this process until the end of the scope.
class LowerLimit {
 public:
  LowerLimit(__rlimit_resource_t resource, rlim_t value) : resource_(resource) {
    ::getrlimit(resource_, &before_);
    const rlimit lower{value, before_.rlim_max};
    ok_ = ::setrlimit(resource_, &lower) == 0;
  }
  LowerLimit(const LowerLimit&) = delete;
  LowerLimit& operator=(const LowerLimit&) = delete;
  ~LowerLimit() { ::setrlimit(resource_, &before_); }
  bool ok() const { return ok_; }

 private:
  __rlimit_resource_t resource_;
  rlimit before_{};
  bool ok_ = false;
};

rlim_t lowest_free_descriptor() {
  const int free = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(free);
  return static_cast<rlim_t>(free);
}

TEST_F(LoaderRefusals, OfDescriptorsNameTheShardAndEndWithTheLimit) {
  for (TransportKind kind : {TransportKind::mapped, TransportKind::staged}) {
    const auto data = open_dataset();
    const auto device = make_host_device(1);
    std::optional<Loader> loader;
    {
      const LowerLimit limit(RLIMIT_NOFILE, lowest_free_descriptor());  // none is left
      ASSERT_TRUE(limit.ok());
      const auto run = [&] {
        loader.emplace(data, device, options(kind));
        run_epoch(*device, *loader, 0);
      };
      EXPECT_SHARD_ERROR(run(), ErrorCode::resource, ".safetensors\": Too many open files");
      EXPECT_SHARD_ERROR(run(), ErrorCode::resource, "raise 'ulimit -n'");
    }
    if (!loader) loader.emplace(data, device, options(kind));
    loader->start_epoch(0);
    EXPECT_EQ(run_epoch(*device, *loader, 0).size(), 12U);
  }
}

std::uint64_t address_space_bytes() {
  std::ifstream status("/proc/self/statm");
  std::uint64_t pages = 0;
  status >> pages;
  return pages * 4096;
}

TEST_F(LoaderRefusals, OfAddressSpaceAreErrorsOfResource) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs terabytes of address space";
  const auto data = open_dataset();
  const auto device = make_host_device(2);
  {
    const LowerLimit limit(RLIMIT_AS, address_space_bytes() + (std::uint64_t{100} << 20U));
    ASSERT_TRUE(limit.ok());
    LoaderOptions large = options(TransportKind::staged);
    large.batch_size = 65'536;
    large.tail = Tail::wrap;
    EXPECT_SHARD_ERROR(Loader(data, device, large), ErrorCode::resource, "host memory");
  }
  Loader loader(data, device, options(TransportKind::staged));
  EXPECT_EQ(run_epoch(*device, loader, 0).size(), 12U);
}

TEST_F(LoaderRefusals, OfThreadsAreErrorsOfResource) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs terabytes of address space";
  const auto data = open_dataset();
  const auto device = make_host_device(1);
  const std::int64_t threads = entries("/proc/self/task");
  {
    const LowerLimit limit(RLIMIT_AS, address_space_bytes() + (std::uint64_t{60} << 20U));
    ASSERT_TRUE(limit.ok());
    EXPECT_SHARD_ERROR(make_host_device(64)->create_stream(), ErrorCode::resource, "use fewer threads");
    LoaderOptions many = options(TransportKind::staged);
    many.threads = 256;
    EXPECT_SHARD_ERROR(Loader(data, device, many), ErrorCode::resource, "use fewer threads");
  }
  EXPECT_EQ(process_use_at_rest(dir_.path(), threads).threads, threads);
}

}  // namespace
}  // namespace shard::testing
