#include <sys/wait.h>
#include <unistd.h>

#include "loader_contract.hpp"

namespace shard::testing {
namespace {

std::shared_ptr<Device> host_one() { return make_host_device(1); }
std::shared_ptr<Device> host_three() { return make_host_device(3); }
INSTANTIATE_TEST_SUITE_P(Host, LoaderContract, ::testing::Values(&host_one, &host_three));

TEST(HostLoader, RefusesToRunInAChildThatWasForked) {
  TempDir dir;
  write_dataset(dir.path(), {});
  LoaderOptions options;
  options.order.batch_size = 8;
  Loader loader(std::make_shared<const Dataset>(Dataset::open(dir.path())), make_host_device(1), options);
  EXPECT_TRUE(loader.next());
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      loader.next();
    } catch (const Error& error) {
      ::_exit(error.code() == ErrorCode::unsupported ? 42 : 1);
    }
    ::_exit(2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

TEST(HostLoader, DecompressesZstdSamples) {
  TempDir dir;
  DatasetShape shape;
  shape.codec = {Codec::Kind::zstd, 3};
  write_dataset(dir.path(), shape);
  auto device = make_host_device(2);
  LoaderOptions options;
  options.order.batch_size = 8;
  Loader loader(std::make_shared<const Dataset>(Dataset::open(dir.path())), device, options);
  EXPECT_EQ(loader.stats().transport, TransportKind::staged);
  EXPECT_NE(loader.stats().reason.find("zstd"), std::string::npos);
  for (const Seen& seen : run_epoch(*device, loader, 0))
    for (std::size_t i = 0; i < seen.ids.size(); ++i) {
      const auto expected = sample_bytes(seen.ids[i], 360);
      ASSERT_EQ(0, std::memcmp(expected.data(), seen.images.data() + i * 360, 360));
    }
}

}  // namespace
}  // namespace shard::testing
