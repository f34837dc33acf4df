// What every device must keep with codec jpeg: the batches of a data set are, bit for bit, those of the same
// samples with codec none on the host; part of the loader's contract (loader_contract.hpp).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "support/jpeg/jpeg_dataset.hpp"
#include "support/loader/loader_free_fields_contract.hpp"

namespace shard::testing {

// All that a batch has.
inline std::vector<std::byte> bytes_of(Device& device, Batch& batch, const LoaderOptions& options) {
  std::vector<std::byte> all(batch.size() * 8);
  std::memcpy(all.data(), batch.ids().data(), all.size());
  const auto append = [&](const TensorView& tensor) {
    const auto bytes = tensor_bytes(device, batch, tensor);
    all.insert(all.end(), bytes.begin(), bytes.end());
  };
  for (std::size_t view = 0; view < batch.views(); ++view) {
    append(batch.images(view));
    for (const auto& [name, field] : options.fields) append(batch.field(name, view));
  }
  return all;
}

struct JpegPair {
  JpegPair(const std::filesystem::path& folder, const JpegShape& shape) {
    write_jpeg_dataset(folder / "jpeg", shape);
    jpeg.emplace(Dataset::open(folder / "jpeg"));
    write_decoded_dataset(folder / "none", shape, *jpeg);
    none.emplace(Dataset::open(folder / "none"));
  }
  std::optional<Dataset> jpeg;
  std::optional<Dataset> none;
};

inline void expect_batches_of_decoded(const std::shared_ptr<Device>& device, const JpegPair& pair,
                                      const LoaderOptions& options) {
  LoaderOptions plain = options;
  plain.transport = TransportKind::mapped;
  plain.memory = {};
  const auto host = make_host_device(2);
  Loader decoded(*pair.none, host, plain);
  Loader loader(*pair.jpeg, device, options);
  // The second epoch has other crops, and finds samples that stay on the device.
  for (const std::uint64_t epoch : {1U, 2U}) {
    loader.start_epoch(epoch);
    decoded.start_epoch(epoch);
    std::size_t batches = 0;
    while (std::optional<Batch> expected = decoded.next()) {
      std::optional<Batch> batch = loader.next();
      ASSERT_TRUE(batch);
      const auto bytes = bytes_of(*device, *batch, options);
      const auto wanted = bytes_of(*host, *expected, options);
      ASSERT_EQ(bytes.size(), wanted.size());
      const auto [at, other] = std::mismatch(bytes.begin(), bytes.end(), wanted.begin());
      ASSERT_TRUE(at == bytes.end()) << "batch " << batches << " of epoch " << epoch << ": byte "
                                     << at - bytes.begin() << " of " << bytes.size();
      ++batches;
    }
    EXPECT_FALSE(loader.next());
    EXPECT_GT(batches, 0U);
  }
  EXPECT_GE(loader.stats().decoded_by_device,
            2 * pair.jpeg->size() / options.batch_size * options.batch_size);
  EXPECT_EQ(loader.stats().decoded_by_host, 0U);
  if (options.transport != TransportKind::resident) {
    EXPECT_EQ(loader.stats().device_bytes, plan_memory(*pair.jpeg, *device, options).device_bytes);
  }
  if (options.transport != TransportKind::resident && options.transport != TransportKind::mapped) {
    EXPECT_EQ(loader.stats().pinned_bytes, plan_memory(*pair.jpeg, *device, options).pinned_bytes);
  }
}

// Padded, patches, operations, mixed pairs and several views, beside those of one size.
inline std::vector<std::pair<std::string, LoaderOptions>> loaders_of_any_size() {
  std::vector<std::pair<std::string, LoaderOptions>> all;
  for (const auto& [name, view] : views_of_any_size()) all.emplace_back(name, free_options(view));
  TransformOptions padded;
  padded.padded = 8;
  padded.flip = 0.5;
  all.emplace_back("padded", free_options(padded));
  padded.operations = operations_of_any_size()[0];
  all.emplace_back("padded, operations", free_options(padded));
  TransformOptions patches;
  patches.patch = 7;
  patches.max_tokens = 20;
  all.emplace_back("patches", free_options(patches));
  patches.operations = operations_of_any_size()[1];
  all.emplace_back("patches, operations", free_options(patches));
  all.emplace_back("buckets", bucket_options());
  all.back().second.bucket_crop = BucketCrop::random;
  LoaderOptions several = free_options(views_of_any_size()[0].second);
  several.transform.dtype = DType::f16;
  several.transform.operations = operations_of_any_size()[4];
  several.further_views = {views_of_any_size()[3].second, views_of_any_size()[6].second,
                           views_of_any_size()[2].second};
  all.emplace_back("several views", several);
  LoaderOptions mixed = free_options(views_of_any_size()[0].second);
  mixed.tail = Tail::drop;
  mixed.mix.cutmix = 0.5;
  mixed.mix.mixup = 0.5;
  all.emplace_back("mixed", mixed);
  return all;
}

// Of all combinations every fourth, so that each way of loading meets several transports.
TEST_P(LoaderContract, DecodesJpegsOfAnySizeAsTheHostDoes) {
  TempDir dir;
  const JpegPair pair(dir.path(), {});
  std::size_t combination = 0;
  for (auto [name, options] : loaders_of_any_size())
    for (const TransportKind kind : all_transports(dir.path() / "jpeg")) {
      if ((combination + combination / 16) % 4 != 0) {
        ++combination;
        continue;
      }
      ++combination;
      SCOPED_TRACE(name + ", " + std::string(to_string(kind)));
      options.transport = kind;
      expect_batches_of_decoded(device_, pair, options);
      if (HasFatalFailure()) return;
    }
}

// Little room: nearly all samples are late, decoded in parts of a batch, and in bands.
TEST_P(LoaderContract, DecodesJpegsWhateverTheRoom) {
  TempDir dir;
  const JpegPair pair(dir.path(), {});
  const std::uint64_t largest = pair.jpeg->info().largest().sample_bytes;
  for (auto [name, options] : loaders_of_any_size()) {
    if (name != "random_resized" && name != "several views" && name != "mixed" && name != "patches") continue;
    for (const TransportKind kind : all_transports(dir.path() / "jpeg")) {
      SCOPED_TRACE(name + ", " + std::string(to_string(kind)));
      options.transport = kind;
      options.memory.batch_bytes = name == "mixed" ? 2 * largest : largest;
      options.prefetch = 1;
      expect_batches_of_decoded(device_, pair, options);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(LoaderContract, DecodesJpegsOfOneSizeAsTheHostDoes) {
  for (const std::uint32_t channels : {3U, 1U}) {
    TempDir dir;
    JpegShape shape;
    shape.free = false;
    shape.channels = channels;
    const JpegPair pair(dir.path(), shape);
    std::vector<std::pair<std::string, TransformOptions>> views{{"as stored", {}}};
    TransformOptions flipped;
    flipped.flip = 0.5;
    flipped.dtype = DType::f16;
    flipped.layout = Layout::nchw;
    views.emplace_back("flipped", flipped);
    for (const auto& [name, view] : views_of_any_size()) {
      if (name.find(',') != std::string::npos && name != "shortest, center") continue;
      views.emplace_back(name, view);
      if (channels == 1 && !view.fill.empty()) views.back().second.fill = {114};
    }
    std::size_t combination = 0;
    for (const auto& [name, view] : views)
      for (const TransportKind kind : all_transports(dir.path() / "jpeg")) {
        if (combination++ % 2 != 0) continue;
        SCOPED_TRACE(name + ", " + std::string(to_string(kind)));
        LoaderOptions options = free_options(view);
        options.transport = kind;
        if (kind == TransportKind::staged) options.further_views = {flipped};
        expect_batches_of_decoded(device_, pair, options);
        if (HasFatalFailure()) return;
      }
  }
}

TEST_P(LoaderContract, DecodesJpegsOfFurtherFields) {
  for (const bool free : {true, false}) {
    TempDir dir;
    JpegShape shape;
    shape.free = free;
    shape.camera = true;
    const JpegPair pair(dir.path(), shape);
    for (const TransportKind kind : all_transports(dir.path() / "jpeg")) {
      SCOPED_TRACE(to_string(kind));
      LoaderOptions options = free_options(views_of_any_size()[0].second);
      options.transport = kind;
      options.fields["camera"].sampling = FieldSampling::bilinear;
      options.verify = Verify::always;
      expect_batches_of_decoded(device_, pair, options);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(LoaderContract, ResumesInTheMiddleOfAnEpochOfJpegs) {
  TempDir dir;
  write_jpeg_dataset(dir.path(), {});
  const Dataset data = Dataset::open(dir.path());
  LoaderOptions options = free_options(views_of_any_size()[0].second);
  Loader loader(data, device_, options);
  const std::vector<Seen> all = run_epoch(*device_, loader, 1);
  ASSERT_EQ(all.size(), 5U);
  loader.start_epoch(1);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(loader.next());
  Loader other(data, device_, options);
  other.resume(LoaderState::parse(loader.state().serialize()));
  std::vector<Seen> rest;
  while (std::optional<Batch> batch = other.next()) rest.push_back(look(*device_, *batch));
  EXPECT_EQ(rest, std::vector<Seen>(all.begin() + 2, all.end()));
}

// The image data end too early.
TEST_P(LoaderContract, NamesTheJpegThatIsDamaged) {
  TempDir dir;
  write_jpeg_dataset(dir.path(), {});
  std::uint64_t at = 0;
  {
    const Dataset data = Dataset::open(dir.path());
    const ShardReader& shard = data.shard(0);
    const std::span<const std::byte> frame = shard.images().frame(3);
    const auto file = file_of(frame, shard.images().frame_spec(3).file);
    const std::size_t begin = jpeg::parse_header(file).data_offset;
    at = static_cast<std::uint64_t>(frame.data() - shard.mapping().data()) + (begin + file.size()) / 2;
  }
  const int shard = ::open((dir.path() / "shard-0.safetensors").c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(::pwrite(shard, "\xFF\xD9", 2, static_cast<off_t>(at)), 2);
  ::close(shard);
  const Dataset data = Dataset::open(dir.path());
  TransformOptions view;
  view.resize = ResizeKind::squash;
  view.resize_height = view.resize_width = 16;
  for (const TransportKind kind : all_transports(dir.path()))
    for (const bool several : {false, true}) {
      SCOPED_TRACE(to_string(kind));
      LoaderOptions options = free_options(view);
      options.transport = kind;
      if (several) options.further_views = {view};
      Loader loader(data, device_, options);
      EXPECT_SHARD_ERROR(run_epoch(*device_, loader, 0), ErrorCode::corrupt,
                         "shard-0.safetensors\": sample 3 (\"k3\")");
    }
}

}  // namespace shard::testing
