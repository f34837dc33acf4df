// Every byte of a shard, flipped one after the other, is found by a loader that is asked to check: by the
// digests of what is stored, since frames have bytes on which no sample depends (padding, seeds of strips
// that are not there, flags of a zstd frame). Every stride()-th byte, see support/rounds.hpp.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "support/device/limited_device.hpp"
#include "support/expect_error.hpp"
#include "support/loader/free_dataset.hpp"
#include "support/rounds.hpp"

namespace shard::testing {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kSamples = 3;

struct Stored {
  const char* name;
  CodecSpec codec;
  bool free;
  bool field;  // a further one, of the same codec
};
void PrintTo(const Stored& stored, std::ostream* out) { *out << stored.name; }

constexpr CodecSpec kZstd{CodecSpec::Kind::zstd, 1};
constexpr CodecSpec kPacked{CodecSpec::Kind::packed};
constexpr CodecSpec kJpeg{CodecSpec::Kind::jpeg, 60};
constexpr Stored kStored[] = {{"none", {}, false, false},
                              {"none_free", {}, true, false},
                              {"none_field", {}, false, true},
                              {"zstd", kZstd, false, false},
                              {"zstd_free", kZstd, true, false},
                              {"zstd_field", kZstd, false, true},
                              {"packed", kPacked, false, false},
                              {"packed_free", kPacked, true, false},
                              {"packed_field", kPacked, false, true},
                              {"jpeg", kJpeg, false, false},
                              {"jpeg_free", kJpeg, true, false},
                              {"jpeg_field", kJpeg, false, true}};

class LoaderFlips : public ::testing::TestWithParam<Stored> {
 protected:
  void SetUp() override {
    DatasetInfo info;
    info.spec = {DType::u8, Layout::nhwc, 3, 5, 7};
    if (GetParam().free) info.spec = info.spec.sized(0, 0);
    info.normalization = kNormalization;
    info.codec = GetParam().codec;
    info.fingerprint = info.source_digest = "0123456789abcdef";
    const SampleSpec depth{DType::u8, Layout::nhwc, 1, 5, 7};
    if (GetParam().field)
      info.fields = {{"depth", FieldRole::image, depth, {{0, 0, 0}, {1, 1, 1}}, GetParam().codec}};
    ShardWriter writer =
        ShardWriter::create(dir_.path() / "shard-0.safetensors", kSamples, ShardWriterOptions{info});
    for (std::uint64_t i = 0; i < kSamples; ++i) {
      const auto label = static_cast<std::int64_t>(i);
      const std::array<std::span<const std::byte>, 1> rows{std::as_bytes(std::span(&label, 1))};
      const std::uint32_t width = GetParam().free ? 4 + static_cast<std::uint32_t>(i) : 7;
      // The last sample is noise, which packing stores as it is.
      const auto sample = bytes(i, std::size_t{5} * width * 3, i + 1 == kSamples);
      const auto further = bytes(i + 9, depth.size_bytes(), false);
      const std::vector<SampleValues> fields(info.fields.size(), SampleValues(further));
      writer.put(i, fmt::format("k{}", i), rows, SampleValues(sample, 5, width), fields);
    }
    info.shards.push_back(writer.publish());
    info.inputs = kSamples;
    publish_file(dir_.path() / kDatasetFile, serialize_dataset(info));
    file_ = ::open((dir_.path() / "shard-0.safetensors").c_str(), O_RDWR | O_CLOEXEC);
  }
  void TearDown() override { ::close(file_); }

  static std::vector<std::byte> bytes(std::uint64_t index, std::size_t size, bool noise) {
    std::vector<std::byte> made = sample_bytes(index, size);
    for (std::byte& one : made)
      if (!noise) one >>= 6;
    return made;
  }
  void flip(std::uint64_t at, char bits) const {
    char byte = 0;
    ASSERT_EQ(::pread(file_, &byte, 1, static_cast<off_t>(at)), 1);
    byte = static_cast<char>(byte ^ bits);
    ASSERT_EQ(::pwrite(file_, &byte, 1, static_cast<off_t>(at)), 1);
  }
  // Where the stored bytes of each sample are in the file, of the images and of the field.
  static std::multimap<std::uint64_t, std::uint64_t> places(const ShardReader& shard) {
    std::multimap<std::uint64_t, std::uint64_t> found;
    for (std::uint64_t sample = 0; sample < kSamples; ++sample)
      for (std::size_t part = 0; part < (GetParam().field ? 2 : 1); ++part) {
        const std::optional<std::size_t> field = part == 0 ? std::nullopt : std::optional<std::size_t>(0);
        const std::span<const std::byte> frame = shard.images(field).frame(sample);
        for (const std::byte& byte : frame)
          found.emplace(sample, static_cast<std::uint64_t>(&byte - shard.mapping().data()));
      }
    return found;
  }
  static LoaderOptions options(TransportKind kind) {
    LoaderOptions options;
    options.transport = kind;
    options.order = OrderMode::sequential;
    options.batch_size = kSamples;
    options.threads = 1;
    options.prefetch = 1;
    options.verify = Verify::always;
    if (GetParam().field) options.fields["depth"].sampling = FieldSampling::stored;
    if (GetParam().free) options.transform.padded = 1;
    return options;
  }
  // Also that of the device.
  static void load(Device& device, Loader& loader) {
    loader.start_epoch(0);
    while (auto batch = loader.next()) {
      batch->wait();
      static_cast<void>(look(device, *batch));
    }
  }

  TempDir dir_;
  int file_ = -1;
};

TEST_P(LoaderFlips, FindsEveryFlippedByteOfEverySample) {
  const Dataset data = Dataset::open(dir_.path());
  const auto flips = places(data.shard(0));
  ASSERT_GE(flips.size(), kSamples * 16);
  const std::shared_ptr<Device> host = make_host_device(1);
  for (const bool gpu_like : {false, true}) {
    const auto device = std::make_shared<LimitedDevice>(host, !gpu_like);
    for (const TransportKind kind : all_transports(dir_.path())) {
      if (kind == TransportKind::mapped && GetParam().codec.kind == CodecSpec::Kind::zstd) continue;
      SCOPED_TRACE(fmt::format("{}, {}", to_string(kind), gpu_like ? "gpu-like" : "in place"));
      // What is resident is read once: each flip needs a loader of its own, and every fifth one is enough.
      const bool resident = kind == TransportKind::resident;
      std::optional<Loader> loader(std::in_place, data, device, options(kind));
      load(*device, *loader);
      const std::uint64_t every = std::max<std::uint64_t>(resident ? 5 : 1, stride());
      std::uint64_t tried = 0;
      for (const auto& [sample, at] : flips) {
        if (tried++ % every != 0) continue;
        if (resident) loader.emplace(data, device, options(kind));
        const char bits = static_cast<char>(1U << at % 8);
        flip(at, bits);
        EXPECT_SHARD_ERROR(load(*device, *loader), ErrorCode::corrupt,
                           fmt::format("shard-0.safetensors\": sample {}", sample));
        flip(at, bits);
        if (HasFailure()) FAIL() << "byte " << at << " of sample " << sample;
      }
      if (resident) loader.emplace(data, device, options(kind));
      EXPECT_NO_THROW(load(*device, *loader));
    }
  }
}

// Labels, keys, tables, and padding between fields: what is not in a sample.
TEST_P(LoaderFlips, FindsEveryFlippedByteOfTheRestOfAShardThatIsOpen) {
  const Dataset data = Dataset::open(dir_.path());
  std::set<std::uint64_t> samples;
  for (const auto& [sample, at] : places(data.shard(0))) samples.insert(at);
  const std::shared_ptr<Device> device = make_host_device(1);
  Loader loader(data, device, options(TransportKind::staged));
  load(*device, loader);
  std::uint64_t tried = 0;
  for (std::uint64_t at = 0; at < data.shard(0).file_size_bytes(); ++at) {
    if (samples.contains(at) || tried++ % stride() != 0) continue;
    const char bits = static_cast<char>(1U << at % 8);
    flip(at, bits);
    EXPECT_SHARD_ERROR(load(*device, loader), ErrorCode::corrupt, "shard-0.safetensors");
    flip(at, bits);
    if (HasFailure()) FAIL() << "byte " << at;
  }
  EXPECT_NO_THROW(load(*device, loader));
}

// first_epoch looks in the first epoch of a loader only; never at no digest.
TEST_P(LoaderFlips, FindsThemInTheEpochsThatAreAskedFor) {
  if (GetParam().codec.kind == CodecSpec::Kind::zstd) return;  // flips of it are seldom without effect
  const Dataset data = Dataset::open(dir_.path());
  const std::shared_ptr<Device> device = make_host_device(1);
  // The last byte of the last sample: noise, which decodes whatever it is, or padding. Of a JPEG the number
  // of dots per inch.
  std::uint64_t at = places(data.shard(0)).rbegin()->second;
  if (GetParam().codec.kind == CodecSpec::Kind::jpeg) {
    const std::span<const std::byte> frame = data.shard(0).images().frame(kSamples - 1);
    at = static_cast<std::uint64_t>(frame.data() - data.shard(0).mapping().data()) + 15;
  }
  LoaderOptions chosen = options(TransportKind::staged);
  chosen.verify = Verify::first_epoch;
  Loader loader(data, device, chosen);
  load(*device, loader);
  flip(at, 4);
  loader.start_epoch(5);
  EXPECT_NO_THROW(while (loader.next()));
  Loader first(data, device, chosen);
  EXPECT_SHARD_ERROR(load(*device, first), ErrorCode::corrupt, "sample 2");
  chosen.verify = Verify::never;
  Loader never(data, device, chosen);
  EXPECT_NO_THROW(load(*device, never));
}

INSTANTIATE_TEST_SUITE_P(Stored, LoaderFlips, ::testing::ValuesIn(kStored),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace shard::testing
