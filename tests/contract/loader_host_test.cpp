#include <fstream>

#include "support/loader/loader_contract.hpp"
#include "support/loader/loader_free_contract.hpp"
#include "support/loader/loader_free_fields_contract.hpp"
#include "support/loader/loader_jpeg_contract.hpp"
#include "support/loader/loader_views_contract.hpp"

namespace shard::testing {
namespace {

std::shared_ptr<Device> host_one() { return make_host_device(1); }
std::shared_ptr<Device> host_three() { return make_host_device(3); }
INSTANTIATE_TEST_SUITE_P(Host, LoaderContract, ::testing::Values(&host_one, &host_three));

TEST(HostLoader, UnpacksSamplesOfCodecsWithFrames) {
  for (const CodecSpec::Kind kind : {CodecSpec::Kind::zstd, CodecSpec::Kind::packed}) {
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
        options.batch_size = 8;
        Loader loader(Dataset::open(dir.path()), device, options);
        if (transport == TransportKind::automatic) {
          const bool zstd = kind == CodecSpec::Kind::zstd;
          EXPECT_EQ(loader.stats().transport, zstd ? TransportKind::staged : TransportKind::mapped);
          EXPECT_EQ(loader.stats().reason.find(to_string(shape.codec)) != std::string::npos, zstd);
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

// 16 packed samples in one shard, of which one has a wrong code in its frame.
void write_damaged(const std::filesystem::path& folder, std::uint64_t damaged) {
  DatasetShape shape;
  shape.codec = {CodecSpec::Kind::packed};
  shape.spec = {DType::u8, Layout::nhwc, 3, 9, 40};
  shape.shards = {16};
  write_dataset(folder, shape);
  const auto path = folder / "shard-0.safetensors";
  std::size_t at = 0;
  {
    const ShardReader reader = ShardReader::open(path);
    ASSERT_EQ(reader.images().frame(damaged)[1], std::byte{1});  // packed
    at = static_cast<std::size_t>(reader.images().frame(damaged).data() - reader.mapping().data()) + 16 + 4;
  }
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(at)).put('\x88');  // its first code
}

LoaderOptions in_order(TransportKind transport, std::uint64_t batch_size) {
  LoaderOptions options;
  options.transport = transport;
  options.order = OrderMode::sequential;
  options.batch_size = batch_size;
  options.verify = Verify::never;
  return options;
}

void expect_names(const Error& error, const std::string& sample) {
  EXPECT_EQ(error.code(), ErrorCode::corrupt);
  for (const std::string& part : {std::string("shard-0.safetensors"), sample, std::string("packed frame")})
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
}

constexpr TransportKind kKinds[] = {TransportKind::mapped, TransportKind::staged, TransportKind::resident,
                                    TransportKind::direct};

TEST(HostLoader, ADamagedFrameIsAnErrorThatNamesShardAndSample) {
  TempDir dir;
  write_damaged(dir.path(), 6);
  for (const TransportKind transport : kKinds) {
    auto device = make_host_device(2);
    Loader loader(Dataset::open(dir.path()), device, in_order(transport, 16));
    auto batch = loader.next();
    ASSERT_TRUE(batch);
    try {
      batch->wait();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      expect_names(error, "sample 6");
    }
  }
}

// A consumer that never waits on the host, as one does whose stream waits.
TEST(HostLoader, ADamagedFrameIsSaidAtTheNextBatchAtTheLatest) {
  std::vector<std::pair<TransportKind, std::uint32_t>> ways;
  for (const TransportKind transport : kKinds)
    for (const std::uint32_t together : {1U, 3U}) ways.emplace_back(transport, together);
  for (const std::uint64_t damaged : {1, 6, 14}) {
    TempDir dir;
    write_damaged(dir.path(), damaged);
    for (const auto& [transport, together] : ways) {
      auto device = make_host_device(2);
      LoaderOptions options = in_order(transport, 4);
      options.together = together;
      Loader loader(Dataset::open(dir.path()), device, options);
      for (int run = 0; run < 2; ++run) {
        loader.start_epoch(static_cast<std::uint64_t>(run));
        std::uint64_t taken = 0;
        try {
          while (loader.next()) ++taken;
          ADD_FAILURE() << "no error";
        } catch (const Error& error) {
          expect_names(error, "sample " + std::to_string(damaged));
        }
        EXPECT_LE(taken, damaged / 4 + 1) << to_string(transport);
        EXPECT_GE(taken, damaged / 4) << to_string(transport) << ", together " << together;
        EXPECT_THROW(loader.next(), Error);  // stays
      }
    }
  }
}

}  // namespace
}  // namespace shard::testing
