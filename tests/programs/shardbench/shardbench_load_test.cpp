// shardbench load: what it measures is what the loader delivered.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "commands/load/load_bench.hpp"
#include "data/load_data.hpp"
#include "limits/decode_limit.hpp"
#include "limits/load_limits.hpp"
#include "report/section.hpp"
#include "sections.hpp"
#include "shard/convert/source.hpp"
#include "support/expect_error.hpp"
#include "support/programs/bench_dataset.hpp"
#include "support/temp_dir.hpp"

namespace shard::bench {
namespace {

TEST(ShardbenchLoad, MeasuresWholeEpochsAgainstABareGather) {
  const testing::TempDir dir;
  const std::string folder = (dir.path() / "data").string();
  make_random_dataset(folder, 100, {DType::u8, Layout::nhwc, 3, 32, 32}, 2);
  const auto dataset = Dataset::open(folder);
  ASSERT_EQ(dataset.size(), 100U);
  LoadCase load;
  load.options.batch_size = 10;
  load.options.verify = Verify::always;  // the random samples carry true checksums
  load.seconds = 0.01;
  load.repeats = 2;
  const std::vector<std::shared_ptr<Device>> devices{make_host_device(1)};
  const LoadResult result = bench_load(dataset, devices, load);
  ASSERT_EQ(result.samples.size(), 2U);
  for (const LoadSample& sample : result.samples) {
    EXPECT_GT(sample.samples_per_second, 0);
    EXPECT_DOUBLE_EQ(sample.bytes_per_second, sample.samples_per_second * 3072);
  }
  EXPECT_GT(result.limit_bytes_per_second, 0);
  ASSERT_EQ(result.stats.size(), 1U);
  EXPECT_EQ(result.stats[0].transport, TransportKind::mapped);
  EXPECT_EQ(result.stats[0].batches % 10, 1U);  // whole epochs of ten, and the first batch
}

TEST(ShardbenchLoad, CountsTheBytesOfSamplesOfAnySize) {
  const testing::TempDir dir;
  const std::string folder = (dir.path() / "data").string();
  make_random_dataset(folder, 100, {DType::u8, Layout::nhwc, 3, 32, 32}, 2, true);
  const auto dataset = Dataset::open(folder);
  ASSERT_TRUE(dataset.info().spec.is_free());
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const auto at = dataset.locate(i);
    const SampleSpec spec = dataset.shard(at.shard).images().spec_of(at.sample);
    EXPECT_GE(spec.height, 19U);
    EXPECT_LE(spec.width, 44U);
    bytes += spec.size_bytes();
  }
  EXPECT_EQ(mean_sample_bytes(dataset), bytes / 100);
  LoadCase load;
  load.options.batch_size = 10;
  load.options.buckets = make_buckets(1024, 8, 2);
  load.options.tail = Tail::short_;
  load.options.verify = Verify::always;
  load.seconds = 0.01;
  load.repeats = 1;
  const std::vector<std::shared_ptr<Device>> devices{make_host_device(1)};
  const LoadResult result = bench_load(dataset, devices, load);
  ASSERT_EQ(result.samples.size(), 1U);
  EXPECT_GT(result.samples[0].samples_per_second, 0);
  EXPECT_DOUBLE_EQ(result.samples[0].bytes_per_second,
                   result.samples[0].samples_per_second * static_cast<double>(bytes / 100));
  EXPECT_GT(result.limit_bytes_per_second, 0);
}

TEST(ShardbenchLoad, ComparesFramesWithTheLimitThatCarriesThem) {
  const testing::TempDir dir;
  testing::make_photos(dir.path() / "photos", 8);
  testing::make_dataset(dir.path() / "photos", dir.path() / "data", "jpeg");
  const auto dataset = Dataset::open(dir.path() / "data");
  const ShardHeader& head = dataset.shard(0).header();
  const double frame = static_cast<double>(head.images_end - head.images_begin) / 8;
  EXPECT_DOUBLE_EQ(mean_frame_bytes(dataset), frame);
  EXPECT_LT(frame, 48 * 48 * 3);
  LoadCase load;
  load.options.batch_size = 4;
  load.seconds = 0.01;
  load.repeats = 1;
  const std::vector<std::shared_ptr<Device>> devices{make_host_device(1)};
  const LoadResult result = bench_load(dataset, devices, load);
  EXPECT_DOUBLE_EQ(result.frame_bytes, frame);
  EXPECT_DOUBLE_EQ(result.limit_frame_bytes_per_second,
                   result.limit_bytes_per_second * (frame / (48 * 48 * 3)));
  // A page around a frame, not around the pixels.
  const std::string is = DiskLimit(dataset, load.options).as_loader_is();
  EXPECT_NE(is.find("blocks of 8 KiB"), std::string::npos) << is;
}

TEST(ShardbenchLoad, StatesTheShareByStoredBytesWhereTheLimitIsInThem) {
  ReportJson json = ReportJson::parse(R"({"limit_bytes_per_second": 5e10, "sample_bytes": 700000,
      "samples": [{"samples_per_second": 2e5, "bytes_per_second": 1.4e11}]})");
  std::string text = to_text(load_section(json));
  EXPECT_NE(text.find("280 % of its limit"), std::string::npos) << text;
  EXPECT_EQ(text.find("bytes/sample"), std::string::npos) << text;
  json["stored_sample_bytes"] = 1e5;  // but samples go over the link
  text = to_text(load_section(json));
  EXPECT_NE(text.find("280 % of its limit"), std::string::npos) << text;
  EXPECT_EQ(text.find("by stored bytes"), std::string::npos) << text;
  json["limit_stored_bytes_per_second"] = 5e10;
  text = to_text(load_section(json));
  for (const char* piece :
       {"40 % of its limit", "100,000", "700,000", "of the limit, by stored bytes           40 %"})
    EXPECT_NE(text.find(piece), std::string::npos) << piece << "\n" << text;
  EXPECT_EQ(text.find("More than 100 %"), std::string::npos) << text;
}

TEST(ShardbenchLoad, ComparesImagesAsTheyAreWithDecodingAlone) {
  const testing::TempDir dir;
  const std::filesystem::path golden = std::filesystem::path(SHARD_TEST_DATA) / "golden" / "images";
  for (int i = 0; i < 20; ++i)
    std::filesystem::copy_file(golden / (i % 4 == 3 ? "png_gray_1.png" : "jpeg_420_33x20.jpg"),
                               dir.path() / fmt::format("{}", i));
  const Dataset dataset = convert::open_data(dir.path());
  LoadCase load;
  load.options.batch_size = 5;
  load.options.transform.crop = CropKind::random_resized;
  load.options.transform.crop_height = load.options.transform.crop_width = 16;
  load.seconds = 0.01;
  load.repeats = 1;
  const std::vector<std::shared_ptr<Device>> devices{make_host_device(1)};
  const LoadResult result = bench_load(dataset, devices, load);
  ASSERT_EQ(result.samples.size(), 1U);
  EXPECT_GT(result.limit_bytes_per_second, 0);
  EXPECT_EQ(result.limit_is, kDecodeIs);
  EXPECT_GE(result.stats[0].decoded_images, 20U);
}

TEST(ShardbenchLoad, DividesTheDataSetBetweenDevices) {
  const testing::TempDir dir;
  const std::string folder = (dir.path() / "data").string();
  make_random_dataset(folder, 100, {DType::u8, Layout::nhwc, 3, 8, 8}, 1);
  const auto dataset = Dataset::open(folder);
  LoadCase load;
  load.options.batch_size = 10;
  load.seconds = 0.01;
  load.repeats = 1;
  const std::vector<std::shared_ptr<Device>> devices{make_host_device(1), make_host_device(1)};
  const LoadResult result = bench_load(dataset, devices, load);
  ASSERT_EQ(result.stats.size(), 2U);
  EXPECT_EQ(result.stats[0].batches % 5, 1U);  // five of ten each, and the first batch of the first
  EXPECT_EQ(result.stats[1].batches % 5, 0U);
}

TEST(ShardbenchLoad, ThrowsWhereItCannotMakeTheDataSet) {
  const testing::TempDir dir;
  std::filesystem::create_directories(dir.path() / "shard-0.safetensors" / "in the way");
  EXPECT_SHARD_ERROR(make_random_dataset(dir.path().string(), 10, {DType::u8, Layout::nhwc, 3, 8, 8}, 2),
                     ErrorCode::invalid_argument, "shard-0.safetensors");
}

TEST(ShardbenchLoad, MakesASparseDataSetThatLoadsAsZeros) {
  const testing::TempDir dir;
  const std::string folder = (dir.path() / "data").string();
  make_sparse_dataset(folder, 100, 7, {DType::u8, Layout::nhwc, 3, 64, 64});
  const Dataset dataset = Dataset::open(folder);
  ASSERT_EQ(dataset.size(), 100U);
  ASSERT_EQ(dataset.info().shards.size(), 7U);
  std::vector<std::byte> scratch;
  for (std::uint32_t s = 0; s < 7; ++s) {
    dataset.shard(s).verify_head();
    for (std::uint64_t i = 0; i < dataset.shard(s).size(); ++i) dataset.shard(s).verify_sample(i, scratch);
  }
}

TEST(ShardbenchLoad, MeasuresTheDiskUnderTheShards) {
  const testing::TempDir dir;
  const std::string folder = (dir.path() / "data").string();
  make_random_dataset(folder, 2000, {DType::u8, Layout::nhwc, 3, 32, 32}, 1);
  const Dataset dataset = Dataset::open(folder);
  const int direct = ::open(dataset.shard(0).path().c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
  LoaderOptions options;
  options.batch_size = 16;
  options.prefetch = 4;
  DiskLimit disk(dataset, options);
  EXPECT_EQ(disk.fastest() > 0, direct >= 0);
  EXPECT_EQ(disk.as_loader() > 0, direct >= 0);
  // Samples of 3,072 bytes at any place: one or two pages; five batches of 16, or threads.
  const std::string is = disk.as_loader_is();
  EXPECT_TRUE(is == "random places, blocks of 8 KiB, 80 requests of io_uring" ||
              is == "random places, blocks of 8 KiB, 32 threads")
      << is;
  if (direct >= 0) {
    EXPECT_NE(disk.fastest_is().find("blocks of"), std::string::npos);
  }
  if (direct >= 0) ::close(direct);
}

// The frames of constant samples are much smaller than the samples, and the last one ends with its file.
TEST(ShardbenchLoad, MeasuresCodecsWithFrames) {
  for (const CodecSpec codec : {CodecSpec{CodecSpec::Kind::zstd, 1}, CodecSpec{CodecSpec::Kind::packed, 3}}) {
    const testing::TempDir dir;
    DatasetInfo info;
    info.spec = {DType::u8, Layout::nhwc, 3, 200, 200};
    info.codec = codec;
    info.fingerprint = info.source_digest = "0123456789abcdef";
    info.inputs = 4;
    ShardWriter writer = ShardWriter::create(dir.path() / "s", 4, ShardWriterOptions{info});
    const std::vector<std::byte> sample(info.spec.size_bytes(), std::byte{7});
    for (std::uint64_t i = 0; i < 4; ++i) writer.put(i, std::to_string(i), std::vector<std::byte>(8), sample);
    info.shards = {writer.publish()};
    publish_file(dir.path() / kDatasetFile, serialize_dataset(info));
    LoadCase load;
    load.options.batch_size = 2;
    load.options.verify = Verify::always;
    load.seconds = 0.01;
    load.repeats = 1;
    const auto dataset = Dataset::open(dir.path());
    const std::vector<std::shared_ptr<Device>> devices{make_host_device(1)};
    const LoadResult result = bench_load(dataset, devices, load);
    EXPECT_GT(result.limit_bytes_per_second, 0);
    EXPECT_EQ(result.stats[0].transport,
              info.codec.kind == CodecSpec::Kind::zstd ? TransportKind::staged : TransportKind::mapped);
  }
}

TEST(ShardbenchLoad, KeepsADataSetThatIsThere) {
  const testing::TempDir dir;
  const std::string folder = (dir.path() / "data").string();
  make_random_dataset(folder, 10, {DType::u8, Layout::nhwc, 3, 8, 8}, 1);
  make_random_dataset(folder, 20, {DType::u8, Layout::nhwc, 3, 8, 8}, 1);
  EXPECT_EQ(Dataset::open(folder).size(), 10U);
}

}  // namespace
}  // namespace shard::bench
