// Images that are not converted: on every device the batches of the data set that a conversion makes of them,
// bit for bit. A device with memory of its own (the parameter) gets JPEG files as they are, and others as
// pixels.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/digest/checksum.hpp"
#include "setup/loader_options.hpp"
#include "shard/convert/convert.hpp"
#include "shard/convert/source.hpp"
#include "shard/loader/loader.hpp"
#include "support/device/forwarding_stream.hpp"
#include "support/device/limited_device.hpp"
#include "support/expect_error.hpp"
#include "support/jpeg/jpeg_files.hpp"
#include "support/loader/free_dataset.hpp"
#include "support/loader/loader_jpeg_contract.hpp"
#include "support/temp_dir.hpp"
#include "transport/memory_plan.hpp"

namespace shard::testing {

namespace fs = std::filesystem;

inline convert::Options options_of_images(const std::filesystem::path& images) {
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

// Its work ends when it is told so.
class StreamThatIsBusy final : public ForwardingStream {
 public:
  StreamThatIsBusy(std::unique_ptr<Stream> inner, const std::atomic<bool>& over)
      : ForwardingStream(std::move(inner)), over_(over) {}
  Event record() override { return Event(std::make_shared<Ended>(over_)); }

 private:
  class Ended final : public Event::Impl {
   public:
    explicit Ended(const std::atomic<bool>& over) : over_(over) {}
    bool done() override { return over_; }
    void wait() override { over_.wait(false); }
    bool wait_for(std::chrono::milliseconds time) override {
      if (!over_) std::this_thread::sleep_for(time);
      return over_;
    }
    void* native() noexcept override { return nullptr; }

   private:
    const std::atomic<bool>& over_;
  };
  const std::atomic<bool>& over_;
};

using MakeDevice = std::shared_ptr<Device> (*)();  // null: there is none on this machine

class LoaderOfImages : public ::testing::TestWithParam<MakeDevice> {
 protected:
  void SetUp() override {
    own_ = GetParam()();
    if (!own_) GTEST_SKIP() << "no such device on this machine";
  }
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
    const auto& own = own_;
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
    if (const auto* watched = dynamic_cast<const LimitedDevice*>(own.get())) {
      EXPECT_EQ(watched->faults(), std::vector<std::string>());
    }
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

  // Instead of the images there.
  template <class IsProgressive>
  void put_jpegs(int count, const IsProgressive& is_progressive) {
    fs::remove_all(images_ / "a");
    fs::create_directories(images_ / "a");
    for (int i = 0; i < count; ++i) {
      JpegOptions of;
      of.width = 90;
      of.height = 70;
      of.progressive = is_progressive(i);
      std::vector<std::uint8_t> pixels;
      for (std::uint32_t at = 0; at < of.width * of.height * 3; ++at)
        pixels.push_back(static_cast<std::uint8_t>(at / 40 + static_cast<std::uint32_t>(i)));
      const std::vector<std::byte> file = encode_jpeg(of, pixels);
      std::ofstream out(images_ / "a" / (std::to_string(i) + ".jpg"), std::ios::binary);
      out.write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
    }
  }

  // Packs the images into an archive, as it is. Their folder stays.
  fs::path pack() const {
    const fs::path tar = dir_.path() / "images.tar";
    const std::string command = "tar -cf '" + tar.string() + "' -C '" + images_.string() + "' .";
    if (std::system(command.c_str()) != 0) throw std::runtime_error("cannot " + command);
    return tar;
  }

  // Ends an epoch after which the device reads all archives where they are mapped.
  static void run_until_registered(Loader& loader, std::uint64_t bytes) {
    std::uint64_t epoch = 10;
    const auto begin = std::chrono::steady_clock::now();
    while (loader.stats().registered_bytes < bytes) {
      ASSERT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60)) << loader.stats().reason;
      loader.start_epoch(epoch++);
      while (loader.next()) continue;
    }
    loader.start_epoch(epoch);  // batches of it may have been begun before
    while (loader.next()) continue;
  }

  static LoaderOptions cropped() {
    LoaderOptions options;
    options.batch_size = 12;
    options.transform.crop = CropKind::random_resized;
    options.transform.crop_height = options.transform.crop_width = 24;
    options.transform.flip = 0.5;
    return options;
  }

  // On the device, epoch 1: a digest of each sample that is delivered, by key.
  static std::map<std::string, std::uint64_t> samples_by_key(const Dataset& data,
                                                             const std::shared_ptr<Device>& device,
                                                             LoaderOptions options) {
    options.on_error = OnError::skip;
    options.tail = Tail::short_;
    options.transform.resize = ResizeKind::squash;
    options.transform.resize_height = options.transform.resize_width = 40;
    Loader loader(data, device, options);
    std::map<std::string, std::uint64_t> samples;
    while (std::optional<Batch> batch = loader.next()) {
      const std::vector<std::byte> bytes = tensor_bytes(*device, *batch, batch->images(0));
      const std::size_t size = bytes.size() / batch->size();
      for (std::size_t row = 0; row < batch->size(); ++row) {
        const auto at = data.locate(batch->ids()[row]);
        samples[data.shard(at.shard).key(at.sample)] = xxh3(std::span(bytes).subspan(row * size, size));
      }
    }
    return samples;
  }

  std::shared_ptr<Device> own_;
  TempDir dir_;
  std::filesystem::path images_ = dir_.path() / "images";
  std::optional<Dataset> converted_;
  std::optional<Dataset> source_;
};

TEST_P(LoaderOfImages, CropsAreThoseOfAConversion) {
  open(options_of_images(images_));
  expect_batches_of_a_conversion(cropped());
  LoaderOptions few = cropped();
  few.prefetch = 1;
  few.threads = 1;
  few.memory.batch_bytes = source_->info().largest().sample_bytes;  // most samples are late
  expect_batches_of_a_conversion(few);
}

TEST_P(LoaderOfImages, ViewsOfAnyKindAreThoseOfAConversion) {
  open(options_of_images(images_));
  for (const auto& [name, options] : loaders_of_any_size()) {
    SCOPED_TRACE(name);
    expect_batches_of_a_conversion(options);
  }
}

TEST_P(LoaderOfImages, ResidentSamplesAreDecodedOnce) {
  open(options_of_images(images_));
  LoaderOptions options = cropped();
  options.transport = TransportKind::resident;
  options.memory.resident_bytes = std::uint64_t{256} << 20U;
  expect_batches_of_a_conversion(options);
}

// A batch is ended while its files are on their way, because a consumer still reads its slot: they are no
// files that the device has refused.
TEST_P(LoaderOfImages, ResidentFilesOfABatchThatWasEndedAreDecodedByTheDevice) {
  if (std::dynamic_pointer_cast<LimitedDevice>(own_) == nullptr)
    GTEST_SKIP() << "a GPU cannot wait for an event of the host";
  put_jpegs(24, [](int) { return false; });
  open(options_of_images(images_));
  LoaderOptions options = cropped();
  options.transport = TransportKind::resident;
  options.memory.resident_bytes = std::uint64_t{256} << 20U;
  options.batch_size = 4;
  options.prefetch = 1;
  std::atomic<bool> over{false};
  StreamThatIsBusy stream(own_->create_stream(), over);
  Loader loader(*source_, own_, options);
  loader.start_epoch(0);
  {
    const std::optional<Batch> first = loader.next();
    first->remember(StreamRef(stream));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the batch that gets its slot is begun
  loader.start_epoch(5);
  over = true;
  over.notify_all();
  for (std::uint64_t epoch = 6; epoch < 8; ++epoch) {
    while (loader.next()) continue;
    loader.start_epoch(epoch);
  }
  EXPECT_EQ(loader.stats().decoded_images, 0U);
}

TEST_P(LoaderOfImages, SamplesOfOneSizeAreThoseOfAConversion) {
  convert::Options given = options_of_images(images_);
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
TEST_P(LoaderOfImages, FilesGoToADeviceAsTheyAre) {
  open(options_of_images(images_));
  Loader loader(*source_, own_, cropped());
  Loader on_host(*source_, make_host_device(2), cropped());
  std::uint64_t samples = 0;
  while (const std::optional<Batch> batch = loader.next()) samples += batch->size();
  while (on_host.next()) continue;
  EXPECT_GT(loader.stats().decoded_by_device, samples / 4);
  EXPECT_LT(loader.stats().decoded_by_device, samples);  // the others were pixels
  EXPECT_EQ(on_host.stats().decoded_by_device, 0U);
}

// A device with memory of its own that decodes them needs more batches at once.
TEST_P(LoaderOfImages, MoreBatchesAreAheadOfFiles) {
  open(options_of_images(images_));
  DeviceInfo info = own_->info();
  LoaderOptions options = cropped();
  const auto prefetch = [&](const Dataset& data) {
    return check_loader_options(options, data, info).prefetch;
  };
  info.decodes_jpeg = true;
  info.reads_host_memory = false;
  EXPECT_EQ(prefetch(*source_), 32U);
  EXPECT_EQ(prefetch(*converted_), 4U);  // codec none
  for (const auto& [rows, wanted] : {std::pair(256U, 16U), {512U, 8U}, {1024U, 4U}, {4096U, 4U}}) {
    options.batch_size = rows;
    EXPECT_EQ(prefetch(*source_), wanted);
  }
  options.further_views.resize(3);
  options.batch_size = 128;
  EXPECT_EQ(prefetch(*source_), 8U);
  options = cropped();
  info.reads_host_memory = true;
  EXPECT_EQ(prefetch(*source_), 4U);
  info.reads_host_memory = false;
  info.decodes_jpeg = false;
  EXPECT_EQ(prefetch(*source_), 4U);
  options.prefetch = 2;
  EXPECT_EQ(prefetch(*source_), 2U);
}

// A batch that is begun before the one before it is ended must not take its buffer.
TEST_P(LoaderOfImages, TwoStagingBuffersAreEnough) {
  open(options_of_images(images_));
  LoaderOptions options = cropped();
  options.threads = 4;
  options.prefetch = 4;
  const Dataset data = for_device(*source_, own_->info());
  const std::uint64_t bytes = staging_memory(data.info(), options, 0).batch_bytes;
  options.memory.pinned_bytes = 2 * bytes + bytes / 2;
  ASSERT_EQ(staging_memory(data.info(), options, 0).plan.buffers, 2U);
  for (int turn = 0; turn < 5; ++turn) expect_batches_of_a_conversion(options);
}

// To transcode one takes longer than to decode it, so that is done once.
TEST_P(LoaderOfImages, FramesOfProgressiveFilesStayInMemory) {
  put_jpegs(12, [](int i) { return i % 3 == 0; });
  open(options_of_images(images_));
  LoaderOptions options = cropped();
  options.batch_size = 4;
  Loader loader(*source_, own_, options);
  for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
    loader.start_epoch(epoch);
    while (loader.next()) continue;
  }
  // One may have been made for a batch of a later epoch, which is not counted before it is used.
  EXPECT_LE(loader.stats().decoded_images, 4U);
  EXPECT_GE(loader.stats().cached_images, 4U * 4);
  EXPECT_GE(loader.stats().decoded_by_device, loader.stats().samples);  // also of the next epoch
  expect_batches_of_a_conversion(options);
}

TEST_P(LoaderOfImages, ABadImageIsAnErrorOrReplaced) {
  fs::remove_all(images_ / "a");
  fs::create_directories(images_ / "a");
  const fs::path golden = fs::path(SHARD_TEST_DATA) / "golden";
  for (int i = 0; i < 9; ++i)
    fs::copy_file(golden / (i == 4 ? "refused/corrupt-jpeg-no-end.jpg" : "images/jpeg_420_33x20.jpg"),
                  images_ / "a" / (std::to_string(i) + ".jpg"));
  const Dataset data = convert::open_source(options_of_images(images_));
  for (const bool own : {false, true}) {
    const auto device = own ? own_ : make_host_device(2);
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

// Files of one size in bytes, so that nothing but what they hold tells what became of them.
TEST_P(LoaderOfImages, DamagedFilesAreWhatAConversionMakesOfThem) {
  fs::remove_all(images_ / "a");
  fs::create_directories(images_ / "a");
  std::mt19937 random(7);
  const fs::path golden = fs::path(SHARD_TEST_DATA) / "golden" / "images";
  for (const char* name : {"jpeg_420_33x20.jpg", "jpeg_restart_each_row.jpg", "jpeg_gray.jpg"}) {
    std::ifstream in(golden / name, std::ios::binary);
    const std::string file((std::istreambuf_iterator<char>(in)), {});
    for (int variant = 0; variant < 60; ++variant) {
      std::string damaged = file;
      const int kind = variant % 4;
      const std::size_t at = random() % file.size();
      if (kind == 0) damaged[at] = static_cast<char>(random());
      if (kind == 1) damaged[at] = static_cast<char>(damaged[at] ^ 1 << random() % 8);
      if (kind == 2) std::fill(damaged.begin() + static_cast<std::ptrdiff_t>(at), damaged.end(), '\0');
      std::ofstream(images_ / "a" / (std::string(name) + std::to_string(variant) + ".jpg"), std::ios::binary)
          << damaged;
    }
  }
  convert::Options options = options_of_images(images_);
  options.out = dir_.path() / "out";
  convert::run(options);
  const Dataset converted = Dataset::open(options.out);
  ASSERT_GT(converted.info().rejects, 10U);
  ASSERT_GT(converted.size(), 30U);
  LoaderOptions by;
  by.batch_size = 7;
  const auto wanted = samples_by_key(converted, make_host_device(2), by);
  const Dataset source = convert::open_source(options_of_images(images_));
  EXPECT_EQ(samples_by_key(source, own_, by), wanted);
  by.transport = TransportKind::resident;
  by.memory.resident_bytes = std::uint64_t{64} << 20U;
  EXPECT_EQ(samples_by_key(source, own_, by), wanted);
}

TEST_P(LoaderOfImages, AFileThatWasReplacedIsAnError) {
  fs::remove_all(images_ / "a");
  fs::create_directories(images_ / "a");
  const fs::path golden = fs::path(SHARD_TEST_DATA) / "golden" / "images";
  for (int i = 0; i < 6; ++i)
    fs::copy_file(golden / "jpeg_420_33x20.jpg", images_ / "a" / (std::to_string(i) + ".jpg"));
  const Dataset data = convert::open_source(options_of_images(images_));
  LoaderOptions options = cropped();
  options.batch_size = 3;
  const fs::path changed = images_ / "a" / "2.jpg";
  const auto read = [&](const char* what) {
    SCOPED_TRACE(what);
    Loader loader(data, own_, options);
    EXPECT_SHARD_ERROR(while (loader.next()) continue, ErrorCode::invalid_argument, "image \"a/2.jpg\": ");
  };
  fs::copy_file(golden / "jpeg_gray.jpg", changed, fs::copy_options::overwrite_existing);
  read("of another size in bytes");
  fs::copy_file(golden / "jpeg_420_33x20.jpg", changed, fs::copy_options::overwrite_existing);
  std::fstream file(changed, std::ios::binary | std::ios::in | std::ios::out);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  const std::size_t frame = bytes.find("\xFF\xC0");
  ASSERT_NE(frame, std::string::npos);
  file.seekp(static_cast<std::streamoff>(frame + 8));  // columns
  file.put(34);
  file.close();
  read("of another size in pixels");
  fs::remove(changed);
  Loader loader(data, own_, options);
  EXPECT_SHARD_ERROR(while (loader.next()) continue, ErrorCode::io, "image \"a/2.jpg\": ");
}

TEST_P(LoaderOfImages, MembersOfAnArchiveAreReadWhereTheyAre) {
  convert::Options given = options_of_images(images_);
  given.images = pack().string();
  open(given);
  expect_batches_of_a_conversion(cropped());
  put_jpegs(60, [](int) { return false; });
  given.images = pack().string();
  const std::uint64_t bytes = fs::file_size(given.images);
  source_.emplace(convert::open_source(given));
  Loader loader(*source_, own_, cropped());
  run_until_registered(loader, bytes);
  const auto* const watched = dynamic_cast<const LimitedDevice*>(own_.get());
  const std::uint64_t before = watched != nullptr ? watched->copies_in_place() : 0;
  const std::uint64_t read_before = watched != nullptr ? watched->copies_from_pinned() : 0;
  const auto host = make_host_device(2);
  Loader on_host(*source_, host, cropped());
  std::uint64_t samples = 0;
  loader.start_epoch(1);
  on_host.start_epoch(1);
  while (std::optional<Batch> wanted = on_host.next()) {
    std::optional<Batch> batch = loader.next();
    ASSERT_TRUE(batch);
    EXPECT_EQ(bytes_of(*own_, *batch, cropped()), bytes_of(*host, *wanted, cropped()));
    samples += batch->size();
  }
  EXPECT_EQ(samples, 60U);
  EXPECT_EQ(plan_memory(*source_, *own_, cropped()).registered_bytes, bytes);
  if (watched != nullptr) {
    EXPECT_GE(watched->copies_in_place() - before, samples);
    EXPECT_EQ(watched->copies_from_pinned(), read_before);
    EXPECT_EQ(watched->faults(), std::vector<std::string>());
  }
}

TEST_P(LoaderOfImages, MembersOfAnArchiveThatIsNotRegisteredAreRead) {
  put_jpegs(60, [](int) { return false; });
  convert::Options given = options_of_images(images_);
  given.images = pack().string();
  open(given);
  LoaderOptions options;
  options.batch_size = 12;
  options.memory.registered_bytes = 4096;
  const auto wanted = samples_by_key(*source_, make_host_device(2), options);
  EXPECT_EQ(wanted.size(), 60U);
  EXPECT_EQ(samples_by_key(*source_, own_, options), wanted);
  options.transform = cropped().transform;
  Loader loader(*source_, own_, options);
  while (loader.next()) continue;
  EXPECT_EQ(loader.stats().registered_bytes, 0U);
  EXPECT_NE(loader.stats().reason.find("4096 may be registered (registered_bytes)"), std::string::npos)
      << loader.stats().reason;
  EXPECT_EQ(plan_memory(*source_, *own_, options).registered_bytes, 4096U);
}

// Nothing reads what the kernels get, so nothing but the times of the archive tells.
TEST_P(LoaderOfImages, AnArchiveThatWasWrittenToIsAnError) {
  put_jpegs(60, [](int) { return false; });
  convert::Options given = options_of_images(images_);
  for (const bool longer : {false, true}) {
    given.images = pack().string();
    const std::uint64_t bytes = fs::file_size(given.images);
    const Dataset data = convert::open_source(given);
    Loader loader(data, own_, cropped());
    run_until_registered(loader, bytes);
    std::fstream file(given.images, std::ios::binary | std::ios::in | std::ios::out);
    if (longer) file.seekp(0, std::ios::end);
    file.put('.');  // as the name of the first member begins
    file.close();
    const auto read = [&] {
      for (std::uint64_t epoch = 1; epoch < 3; ++epoch) {
        loader.start_epoch(epoch);
        while (loader.next()) continue;
      }
    };
    EXPECT_SHARD_ERROR(read(), ErrorCode::invalid_argument,
                       longer ? "bytes, but had" : "was replaced or written to");
  }
}

// The device gets all of them as files, and refuses one. All batches are those of the order.
TEST_P(LoaderOfImages, ARefusedFileIsDecodedByTheHostInItsBatch) {
  fs::remove_all(images_ / "a");
  fs::create_directories(images_ / "a");
  const fs::path golden = fs::path(SHARD_TEST_DATA) / "golden" / "images";
  for (int i = 0; i < 40; ++i)
    fs::copy_file(golden / "jpeg_420_33x20.jpg", images_ / "a" / (std::to_string(100 + i) + ".jpg"));
  // Zeros behind the last code, which decoders skip with a warning that says nothing of the pixels.
  std::ifstream in(golden / "jpeg_420_33x20.jpg", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  bytes.insert(bytes.size() - 2, std::string(2, '\0'));
  std::ofstream(images_ / "a" / "117.jpg", std::ios::binary) << bytes;
  open(options_of_images(images_));
  expect_batches_of_a_conversion(cropped());
}

}  // namespace shard::testing
