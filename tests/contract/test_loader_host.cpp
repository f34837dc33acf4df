#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

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

TEST(HostLoader, UnpacksSamplesOfCodecsWithFrames) {
  for (const Codec::Kind kind : {Codec::Kind::zstd, Codec::Kind::packed}) {
    for (const Layout layout : {Layout::nhwc, Layout::nchw}) {
      TempDir dir;
      DatasetShape shape;
      shape.codec = {kind, 3};
      shape.spec = {DType::u8, layout, 3, 9, 40};
      write_dataset(dir.path(), shape);
      for (const TransportKind transport : {TransportKind::automatic, TransportKind::direct}) {
        auto device = make_host_device(2);
        LoaderOptions options;
        options.transport = transport;
        options.order.batch_size = 8;
        Loader loader(std::make_shared<const Dataset>(Dataset::open(dir.path())), device, options);
        if (transport == TransportKind::automatic) {
          EXPECT_EQ(loader.stats().transport, TransportKind::staged);
          EXPECT_NE(loader.stats().reason.find(to_string(shape.codec)), std::string::npos);
        }
        const std::size_t size = shape.spec.size_bytes();
        for (const Seen& seen : run_epoch(*device, loader, 0))
          for (std::size_t i = 0; i < seen.ids.size(); ++i) {
            const auto expected = sample_of(shape, seen.ids[i]);
            ASSERT_EQ(0, std::memcmp(expected.data(), seen.images.data() + i * size, size));
          }
      }
    }
  }
}

TEST(HostLoader, ADamagedFrameIsAnErrorThatNamesShardAndSample) {
  TempDir dir;
  DatasetShape shape;
  shape.codec = {Codec::Kind::packed, 3};
  shape.spec = {DType::u8, Layout::nhwc, 3, 9, 40};
  shape.shards = {16};
  write_dataset(dir.path(), shape);
  const auto path = dir.path() / "shard-0.safetensors";
  std::size_t at = 0;
  {
    const ShardReader reader = ShardReader::open(path);
    at = static_cast<std::size_t>(reader.frame(5).data() - reader.mapping().data()) + 16 +
         4;                                       // its first code
    ASSERT_EQ(reader.frame(5)[1], std::byte{1});  // packed
  }
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(at)).put('\x88');
  file.close();
  for (const TransportKind transport : {TransportKind::staged, TransportKind::direct}) {
    auto device = make_host_device(2);
    LoaderOptions options;
    options.transport = transport;
    options.verify = Verify::never;
    options.order.batch_size = 16;
    Loader loader(std::make_shared<const Dataset>(Dataset::open(dir.path())), device, options);
    try {
      run_epoch(*device, loader, 0);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt);
      for (const char* part : {"shard-0.safetensors", "sample 5", "packed frame"})
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace shard::testing
