// The loader's contract on a CUDA device; skipped, visibly, where there is none.
#include <atomic>
#include <thread>

#include "shard/loader/cuda_device.hpp"
#include "support/loader/loader_contract.hpp"
#include "support/loader/loader_free_contract.hpp"
#include "support/loader/loader_free_fields_contract.hpp"
#include "support/loader/loader_jpeg_contract.hpp"
#include "support/loader/loader_views_contract.hpp"

namespace shard::testing {
namespace {

std::shared_ptr<Device> cuda_first() { return cuda_device_count() > 0 ? make_cuda_device(0) : nullptr; }
INSTANTIATE_TEST_SUITE_P(Cuda, LoaderContract, ::testing::Values(&cuda_first));

class CudaLoader : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device on this machine";
  }
};

TEST_F(CudaLoader, GivesTheBitsOfTheHostDevice) {
  TempDir dir;
  write_dataset(dir.path(), {});
  const auto data = Dataset::open(dir.path());
  for (CropKind crop : {CropKind::none, CropKind::center, CropKind::random, CropKind::random_resized}) {
    for (DType dtype : {DType::u8, DType::f16, DType::bf16, DType::f32}) {
      LoaderOptions options;
      options.batch_size = 8;
      options.transform.crop = crop;
      if (crop != CropKind::none) options.transform.crop_height = options.transform.crop_width = 9;
      options.transform.flip = 0.5;
      options.transform.dtype = dtype;
      options.transform.layout = Layout::nchw;
      auto host = make_host_device(2);
      auto cuda = make_cuda_device(0);
      Loader on_host(data, host, options);
      Loader on_cuda(data, cuda, options);
      EXPECT_EQ(run_epoch(*cuda, on_cuda, 1), run_epoch(*host, on_host, 1))
          << "crop " << static_cast<int>(crop) << ", " << to_string(dtype);
    }
  }
}

TEST_F(CudaLoader, GivesTheBitsOfTheHostDeviceForSamplesOfAnySize) {
  for (const CodecSpec& codec : {CodecSpec{}, CodecSpec{CodecSpec::Kind::packed}}) {
    TempDir dir;
    FreeShape shape;
    shape.codec = codec;
    write_free_dataset(dir.path(), shape);
    const auto data = Dataset::open(dir.path());
    for (const auto& [name, view] : views_of_any_size())
      for (DType dtype : {DType::u8, DType::f16, DType::bf16, DType::f32})
        for (Layout layout : {Layout::nchw, Layout::nhwc}) {
          LoaderOptions options = free_options(view);
          options.transform.dtype = dtype;
          options.transform.layout = layout;
          auto host = make_host_device(2);
          auto cuda = make_cuda_device(0);
          Loader on_host(data, host, options);
          Loader on_cuda(data, cuda, options);
          ASSERT_EQ(run_epoch(*cuda, on_cuda, 1), run_epoch(*host, on_host, 1))
              << name << ", " << to_string(dtype) << ", " << to_string(codec);
        }
  }
}

TEST_F(CudaLoader, GivesTheBitsOfTheHostDeviceForFieldsOfAnySize) {
  for (const CodecSpec& codec : codecs_of_fields()) {
    TempDir dir;
    FreeShape shape;
    shape.codec = codec;
    shape.fields = free_fields(codec.kind);
    write_free_dataset(dir.path(), shape);
    const auto data = Dataset::open(dir.path());
    for (const auto& [name, view] : views_of_any_size()) {
      LoaderOptions options = free_options(view);
      deliver_free_fields(options);
      options.transform.operations = {ops::Affine{{-90, 90}, {0.2, 0.2}}, ops::PaddedCrop{2}};
      auto host = make_host_device(2);
      auto cuda = make_cuda_device(0);
      Loader on_host(data, host, options);
      Loader on_cuda(data, cuda, options);
      ASSERT_TRUE(all_fields(*cuda, on_cuda, 1) == all_fields(*host, on_host, 1))
          << name << ", " << to_string(codec);
    }
  }
}

TEST_F(CudaLoader, GivesTheBitsOfTheHostDeviceForOtherDTypesAndManyChannelsOfAnySize) {
  for (const DType stored : {DType::u8, DType::u16, DType::f16, DType::bf16, DType::f32})
    for (const Layout layout : {Layout::nhwc, Layout::nchw})
      for (const std::uint32_t channels : {1U, 3U, 4U, 7U}) {
        TempDir dir;
        FreeShape shape;
        shape.spec = {stored, layout, channels, 0, 0};
        write_free_dataset(dir.path(), shape);
        const auto data = Dataset::open(dir.path());
        for (const auto& [name, asked] : views_of_any_size())
          for (const DType dtype : {stored, DType::f16, DType::f32}) {
            TransformOptions view = asked;
            view.fill.clear();
            LoaderOptions options = free_options(view);
            options.transform.dtype = dtype;
            auto host = make_host_device(2);
            auto cuda = make_cuda_device(0);
            Loader on_host(data, host, options);
            Loader on_cuda(data, cuda, options);
            ASSERT_EQ(run_epoch(*cuda, on_cuda, 1), run_epoch(*host, on_host, 1))
                << name << ", " << to_string(shape.spec.dtype) << " of " << channels << " channels";
          }
      }
}

TEST_F(CudaLoader, GivesAllMemoryBackOverManyOpenings) {
  TempDir dir;
  write_dataset(dir.path(), {});
  auto device = make_cuda_device(0);
  std::uint64_t before = 0;
  for (int i = 0; i < 200; ++i) {
    LoaderOptions options;
    options.batch_size = 8;
    options.transport = i % 2 == 0 ? TransportKind::mapped : TransportKind::staged;
    Loader loader(Dataset::open(dir.path()), device, options);
    ASSERT_TRUE(loader.next());
    if (i == 10) before = device->free_memory_bytes();
  }
  EXPECT_GE(device->free_memory_bytes() + (std::uint64_t{8} << 20U), before);
}

// Several loaders of a process register one mapping: whole, and the begin of it when they are made.
TEST_F(CudaLoader, RegistersAMappingThatOthersHaveRegisteredInPart) {
  auto device = make_cuda_device(0);
  if (!device->info().registers_read_only) GTEST_SKIP() << "cannot register read-only mappings";
  TempDir dir;
  DatasetShape shape;
  shape.spec = {DType::u8, Layout::nhwc, 3, 512, 512};
  shape.shards = {4};
  write_dataset(dir.path(), shape);
  const ShardReader shard = ShardReader::open(dir.path() / "shard-0.safetensors");
  const auto images = shard.mapping().subspan(shard.header().images_begin);
  const auto begin = images.first(std::size_t{1} << 20U);
  auto whole = device->register_read_only(images);
  auto part = device->register_read_only(begin);  // shares what is there
  EXPECT_EQ(part->range().size(), begin.size());
  whole.reset();
  whole = device->register_read_only(images);
  whole.reset();
  part.reset();
  part = device->register_read_only(begin);
  std::atomic<bool> asks{false};
  std::thread other([&] {
    asks = true;
    EXPECT_NO_THROW(whole = device->register_read_only(images));  // waits for the part
  });
  while (!asks) std::this_thread::yield();
  part.reset();
  other.join();
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->range().size(), images.size());
}

// A shard of more than one piece of a registration: CUDA refuses copies that cross them.
TEST_F(CudaLoader, BringsSamplesThatLieInTwoPieces) {
  auto device = make_cuda_device(0);
  TempDir dir;
  DatasetShape shape;
  shape.spec = {DType::u8, Layout::nhwc, 3, 600, 607};
  shape.shards = {80};
  const std::uint64_t size = shape.spec.size_bytes();
  const std::uint64_t piece = device->info().registration_piece_bytes;
  ASSERT_GT(80 * size, piece);
  ASSERT_NE(piece % size, 0U);
  write_dataset(dir.path(), shape);
  LoaderOptions options;
  options.transport = TransportKind::mapped;
  options.order = OrderMode::sequential;
  options.batch_size = 8;
  Loader loader(Dataset::open(dir.path()), device, options);
  // Until a whole epoch came out of registered memory.
  bool registered = false;
  for (std::uint64_t epoch = 0, last = 1000; epoch <= last; ++epoch) {
    if (!registered && loader.stats().registered_bytes > 0) {
      registered = true;
      last = epoch + 1;
    }
    for (const Seen& seen : run_epoch(*device, loader, epoch))
      for (std::size_t i = 0; i < seen.ids.size() && epoch == last; ++i)
        ASSERT_EQ(0, std::memcmp(sample_of(shape, seen.ids[i]).data(), seen.images.data() + i * size, size))
            << "sample " << seen.ids[i];
  }
  EXPECT_TRUE(registered);
}

}  // namespace
}  // namespace shard::testing
