// Images that are not converted: on every device the batches of the data set that a conversion makes of them,
// bit for bit. A device with memory of its own gets JPEG files as frames, and others as pixels.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "expect_error.hpp"
#include "free_dataset.hpp"
#include "limited_device.hpp"
#include "loader_jpeg_contract.hpp"
#include "shard/convert/convert.hpp"
#include "shard/convert/source.hpp"
#include "shard/loader/loader.hpp"
#include "temp_dir.hpp"

namespace shard::testing {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LoaderContract);  // of the headers

namespace {

namespace fs = std::filesystem;

// It copies from pinned memory only, as a GPU.
std::shared_ptr<LimitedDevice> with_own_memory() {
  return std::make_shared<LimitedDevice>(make_host_device(2), false);
}

convert::Options options_of(const fs::path& images) {
  convert::Options options;
  options.images = images.string();
  options.preprocess.free_size.emplace();
  options.preprocess.dtype = DType::u8;
  options.preprocess.layout = Layout::nhwc;
  options.preprocess.normalization = {};
  options.samples_per_shard = 11;
  options.jobs = 2;
  return options;
}

class LoaderOfImages : public ::testing::Test {
 protected:
  // All golden images: JPEG files of every kind, turned ones, and other formats.
  LoaderOfImages() {
    const fs::path golden = fs::path(SHARD_TEST_DATA) / "golden" / "images";
    fs::create_directories(images_ / "a");
    for (const auto& entry : fs::directory_iterator(golden))
      if (entry.path().extension() != ".ppm")
        fs::copy_file(entry.path(), images_ / "a" / entry.path().filename());
  }

  void expect_batches_of_a_conversion(const LoaderOptions& options) const {
    const auto host = make_host_device(2);
    const auto own = with_own_memory();
    Loader converted(*converted_, host, options);
    Loader on_host(*source_, host, options);
    Loader on_device(*source_, own, options);
    for (const std::uint64_t epoch : {1U, 2U}) {
      std::size_t batches = 0;
      for (Loader* loader : {&converted, &on_host, &on_device}) loader->start_epoch(epoch);
      while (std::optional<Batch> expected = converted.next()) {
        const auto wanted = bytes_of(*host, *expected, options);
        std::optional<Batch> batch = on_host.next();
        ASSERT_TRUE(batch);
        EXPECT_EQ(bytes_of(*host, *batch, options), wanted) << "host, batch " << batches;
        batch = on_device.next();
        ASSERT_TRUE(batch);
        EXPECT_EQ(bytes_of(*own, *batch, options), wanted) << "device, batch " << batches;
        ++batches;
      }
      EXPECT_GT(batches, 0U);
    }
    EXPECT_EQ(on_device.stats().transport,
              options.transport == TransportKind::resident ? TransportKind::resident : TransportKind::staged);
    EXPECT_GT(on_device.stats().decoded_images, 0U);
    EXPECT_EQ(own->faults(), std::vector<std::string>());
    if (options.transport != TransportKind::resident) {
      EXPECT_EQ(on_device.stats().device_bytes, plan_memory(*source_, *own, options).device_bytes);
      EXPECT_EQ(on_device.stats().pinned_bytes, plan_memory(*source_, *own, options).pinned_bytes);
    }
  }

  void open(const convert::Options& given) {
    convert::Options options = given;
    options.out = dir_.path() / "out";
    convert::run(options);
    converted_.emplace(Dataset::open(options.out));
    source_.emplace(convert::open_source(given));
    ASSERT_EQ(source_->size(), converted_->size());
  }

  static LoaderOptions cropped() {
    LoaderOptions options;
    options.batch_size = 12;
    options.transform.crop = CropKind::random_resized;
    options.transform.crop_height = options.transform.crop_width = 24;
    options.transform.flip = 0.5;
    return options;
  }

  TempDir dir_;
  fs::path images_ = dir_.path() / "images";
  std::optional<Dataset> converted_;
  std::optional<Dataset> source_;
};

TEST_F(LoaderOfImages, CropsAreThoseOfAConversion) {
  open(options_of(images_));
  expect_batches_of_a_conversion(cropped());
  LoaderOptions few = cropped();
  few.prefetch = 1;
  few.threads = 1;
  few.memory.batch_bytes = source_->info().largest().sample_bytes;  // most samples are late
  expect_batches_of_a_conversion(few);
}

TEST_F(LoaderOfImages, ViewsOfAnyKindAreThoseOfAConversion) {
  open(options_of(images_));
  for (const auto& [name, options] : loaders_of_any_size()) {
    SCOPED_TRACE(name);
    expect_batches_of_a_conversion(options);
  }
}

TEST_F(LoaderOfImages, ResidentSamplesAreDecodedOnce) {
  open(options_of(images_));
  LoaderOptions options = cropped();
  options.transport = TransportKind::resident;
  options.memory.resident_bytes = std::uint64_t{256} << 20U;
  expect_batches_of_a_conversion(options);
}

TEST_F(LoaderOfImages, SamplesOfOneSizeAreThoseOfAConversion) {
  convert::Options given = options_of(images_);
  given.preprocess.free_size.reset();
  given.preprocess.resize_short = 40;
  given.preprocess.crop = image::Size{32, 32};
  open(given);
  LoaderOptions options;
  options.batch_size = 12;
  expect_batches_of_a_conversion(options);
  options.transform.flip = 0.5;
  options.transform.dtype = DType::f16;
  expect_batches_of_a_conversion(options);
}

// Half of the golden images are JPEGs that frames hold.
TEST_F(LoaderOfImages, FilesGoToADeviceAsTheyAre) {
  open(options_of(images_));
  const auto own = with_own_memory();
  Loader loader(*source_, own, cropped());
  Loader on_host(*source_, make_host_device(2), cropped());
  std::uint64_t samples = 0;
  while (const std::optional<Batch> batch = loader.next()) samples += batch->size();
  while (on_host.next()) continue;
  EXPECT_GT(loader.stats().decoded_by_device, samples / 4);
  EXPECT_LT(loader.stats().decoded_by_device, samples);  // the others were pixels
  EXPECT_EQ(on_host.stats().decoded_by_device, 0U);
}

TEST_F(LoaderOfImages, ABadImageIsAnErrorOrReplaced) {
  fs::remove_all(images_ / "a");
  fs::create_directories(images_ / "a");
  const fs::path golden = fs::path(SHARD_TEST_DATA) / "golden";
  for (int i = 0; i < 9; ++i)
    fs::copy_file(golden / (i == 4 ? "refused/corrupt-jpeg-no-end.jpg" : "images/jpeg_420_33x20.jpg"),
                  images_ / "a" / (std::to_string(i) + ".jpg"));
  const Dataset data = convert::open_source(options_of(images_));
  for (const bool own : {false, true}) {
    const auto device = own ? std::shared_ptr<Device>(with_own_memory()) : make_host_device(2);
    LoaderOptions options = cropped();
    options.batch_size = 3;
    Loader refusing(data, device, options);
    EXPECT_SHARD_ERROR(while (refusing.next()) continue, ErrorCode::corrupt, "image \"a/4.jpg\": ");
    options.on_error = OnError::skip;
    Loader replacing(data, device, options);
    std::vector<std::uint64_t> seen(9);
    while (const std::optional<Batch> batch = replacing.next())
      for (const std::uint64_t id : batch->ids()) ++seen[id];
    EXPECT_EQ(seen, (std::vector<std::uint64_t>{1, 1, 1, 1, 0, 2, 1, 1, 1}));
    EXPECT_GE(replacing.stats().replaced_images, 1U);  // also of the next epoch, which is begun ahead
    EXPECT_NE(replacing.stats().unusable_images.find("a/4.jpg"), std::string::npos);
  }
}

}  // namespace
}  // namespace shard::testing
