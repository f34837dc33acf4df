// Thousands of shards with few descriptors, and shards that are replaced or removed under a running loader.
#include <sys/resource.h>

#include <cstdlib>
#include <fstream>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "format/shard/shard_profile.hpp"
#include "support/deadline.hpp"
#include "support/device/limited_device.hpp"
#include "support/expect_error.hpp"
#include "support/loader/loader_fixture.hpp"
#include "support/process_use.hpp"
#include "support/rounds.hpp"

namespace shard::testing {
namespace {

constexpr std::uint64_t kPerShard = 2;
const SampleSpec kSpec{DType::u8, Layout::nhwc, 3, 8, 8};

// SHARD_TEST_SHARDS=20000 for the size that is promised.
std::uint64_t shard_count() {
  const char* const text = std::getenv("SHARD_TEST_SHARDS");
  return text == nullptr ? 2000 : std::strtoull(text, nullptr, 10);
}

std::vector<std::byte> image_of(std::uint64_t index) { return sample_bytes(index, kSpec.size_bytes()); }

// The bytes of a shard of two samples that ShardWriter wrote, with other samples put in: ShardWriter flushes
// each shard to the disk, which takes too long here.
class ShardMold {
 public:
  explicit ShardMold(const std::filesystem::path& path) {
    const ShardReader reader = ShardReader::open(path);
    header_ = reader.header();
    bytes_.assign(reader.mapping().begin(), reader.mapping().end());
    const std::size_t json_bytes = static_cast<std::size_t>(header_.container.data_begin) - 8;
    digits_at_ = 8 + find_digest_digits(as_text(std::span(bytes_).subspan(8, json_bytes))).value();
  }

  ShardSummary write(const std::filesystem::path& path, std::uint64_t first) {
    for (std::uint64_t i = 0; i < kPerShard; ++i) {
      const std::vector<std::byte> image = image_of(first + i);
      std::copy(image.begin(), image.end(),
                bytes_.begin() + static_cast<std::ptrdiff_t>(header_.images_begin + i * image.size()));
      store_u64(bytes_, at("labels") + i * 8, 1000 + first + i);
      store_u64(bytes_, at("checksums") + i * 8, xxh3(image));
    }
    const std::uint64_t digest =
        digest_head(std::span(bytes_).first(static_cast<std::size_t>(header_.images_begin)), digits_at_);
    const std::string digits = to_hex(digest);
    std::memcpy(bytes_.data() + digits_at_, digits.data(), digits.size());
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes_.data()), static_cast<std::streamsize>(bytes_.size()));
    return {path.filename().string(), kPerShard, bytes_.size(), digest};
  }

 private:
  std::size_t at(const char* tensor) const {
    return static_cast<std::size_t>(header_.container.data_begin + header_.container.find(tensor)->begin);
  }

  ShardHeader header_;
  std::vector<std::byte> bytes_;
  std::size_t digits_at_ = 0;
};

void write_shards(const std::filesystem::path& folder, std::uint64_t shards) {
  DatasetShape shape;
  shape.shards = {kPerShard};
  shape.spec = kSpec;
  write_dataset(folder, shape);
  ShardMold mold(folder / "shard-0.safetensors");
  DatasetInfo info = Dataset::open(folder).info();
  info.shards.clear();
  for (std::uint64_t i = 0; i < shards; ++i)
    info.shards.push_back(mold.write(folder / ("s" + std::to_string(i) + ".safetensors"), i * kPerShard));
  info.inputs = shards * kPerShard;
  publish_file(folder / kDatasetFile, serialize_dataset(info));
}

class LowerDescriptors {
 public:
  explicit LowerDescriptors(rlim_t value) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit lower{value, before_.rlim_max};
    ok_ = ::setrlimit(RLIMIT_NOFILE, &lower) == 0;
  }
  LowerDescriptors(const LowerDescriptors&) = delete;
  LowerDescriptors& operator=(const LowerDescriptors&) = delete;
  ~LowerDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  bool ok() const { return ok_; }

 private:
  rlimit before_{};
  bool ok_ = false;
};

LoaderOptions options_of(TransportKind kind) {
  LoaderOptions options;
  options.transport = kind;
  options.batch_size = 96;
  options.tail = Tail::pad;
  options.threads = 4;
  return options;
}

// Empty: the epoch has every sample once, with its bytes and its label.
std::string check_epoch(Device& device, Loader& loader, std::uint64_t samples, std::uint64_t epoch) {
  std::vector<int> times(samples, 0);
  const std::uint64_t size = kSpec.size_bytes();
  for (Batch& batch : loader.epoch(epoch)) {
    const Seen seen = look(device, batch);
    for (std::size_t i = 0; i < seen.ids.size(); ++i) {
      const std::uint64_t id = seen.ids[i];
      const std::vector<std::byte> expected = image_of(id);
      if (std::memcmp(expected.data(), seen.images.data() + i * size, size) != 0)
        return "wrong bytes for sample " + std::to_string(id);
      if (seen.labels[i] != static_cast<std::int64_t>(1000 + id))
        return "wrong label for sample " + std::to_string(id);
      times[id] += seen.mask[i];
    }
  }
  return times == std::vector<int>(samples, 1) ? "" : "a sample was left out or repeated";
}

TEST(ThousandsOfShards, LoadWith256DescriptorsOnEveryTransport) {
  const std::uint64_t shards = shard_count();
  const TempDir dir;
  write_shards(dir.path(), shards);
  const std::vector<TransportKind> kinds = all_transports(dir.path());
  const LowerDescriptors limit(256);
  ASSERT_TRUE(limit.ok());
  for (const bool gpu_like : {false, true}) {
    for (const TransportKind kind : kinds) {
      const auto data = Dataset::open(dir.path());
      const std::shared_ptr<Device> device =
          gpu_like ? std::shared_ptr<Device>(make_gpu_like_device(2)) : make_host_device(2);
      LoaderOptions options = options_of(kind);
      options.verify = Verify::first_epoch;
      Loader loader(data, device, options);
      for (std::uint64_t epoch = 0; epoch < 2; ++epoch)
        EXPECT_EQ(check_epoch(*device, loader, shards * kPerShard, epoch), "")
            << to_string(kind) << " epoch " << epoch << " gpu-like " << gpu_like << ": "
            << loader.stats().reason;
    }
  }
}

TEST(ThousandsOfShards, KeepNoDescriptorOpen) {
  const TempDir dir;
  write_shards(dir.path(), 300);
  const Dataset data = Dataset::open(dir.path());
  const std::int64_t before = entries("/proc/self/fd");
  for (std::uint32_t i = 0; i < 300; ++i) EXPECT_EQ(data.shard(i).label(1), 1000 + 2 * i + 1);
  EXPECT_EQ(entries("/proc/self/fd"), before);
}

// A batch touches more shards than there are descriptors: reads wait for those of others.
TEST(ThousandsOfShards, DirectReadsShareAFewDescriptors) {
  const TempDir dir;
  write_shards(dir.path(), 400);
  const std::vector<TransportKind> kinds = link_transports(dir.path());
  if (std::find(kinds.begin(), kinds.end(), TransportKind::direct) == kinds.end())
    GTEST_SKIP() << "no O_DIRECT in " << dir.path();
  const auto data = Dataset::open(dir.path());
  const auto device = make_host_device(2);
  const auto open_now = static_cast<rlim_t>(entries("/proc/self/fd"));
  const LowerDescriptors limit(open_now + 12);
  ASSERT_TRUE(limit.ok());
  LoaderOptions options = options_of(TransportKind::direct);
  options.batch_size = 256;
  Loader loader(data, device, options);
  EXPECT_EQ(check_epoch(*device, loader, 800, 0), "");
}

std::uint64_t status_bytes(const std::string& name) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(name + ":")) return std::stoull(line.substr(name.size() + 1)) * 1024;
  return 0;
}

// Opening costs memory by shard, not by sample. SHARD_TEST_OPEN_SHARDS=2000 for 20 million samples.
TEST(ManySamples, AreNotKeptInMemory) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer keeps freed memory";
  const char* const text = std::getenv("SHARD_TEST_OPEN_SHARDS");
  const std::uint64_t shards = text == nullptr ? 60 : std::strtoull(text, nullptr, 10);
  constexpr std::uint64_t kShardSamples = 10'000;
  const TempDir dir;
  DatasetShape shape;
  shape.shards = {kShardSamples};
  shape.spec = {DType::u8, Layout::nhwc, 1, 1, 4};
  write_dataset(dir.path(), shape);
  DatasetInfo info = Dataset::open(dir.path()).info();
  while (info.shards.size() < shards) {  // the same file under many names
    info.shards.push_back(info.shards.front());
    info.shards.back().file = "s" + std::to_string(info.shards.size());
    std::filesystem::create_hard_link(dir.path() / "shard-0.safetensors",
                                      dir.path() / info.shards.back().file);
  }
  info.inputs = shards * kShardSamples;
  publish_file(dir.path() / kDatasetFile, serialize_dataset(info));

  const std::uint64_t before = status_bytes("RssAnon");
  const std::uint64_t mapped_before = status_bytes("RssFile");
  const Dataset data = Dataset::open(dir.path());
  for (std::uint32_t i = 0; i < shards; ++i) static_cast<void>(data.shard(i));
  const std::uint64_t now = status_bytes("RssAnon");
  const std::uint64_t bytes = now > before ? now - before : 0;
  const std::uint64_t mapped_now = status_bytes("RssFile");
  std::printf(
      "%llu shards of %llu samples: %.1f KiB a shard, %.2f bytes per sample; %.1f MiB of files resident\n",
      static_cast<unsigned long long>(shards), static_cast<unsigned long long>(kShardSamples),
      static_cast<double>(bytes) / 1024 / static_cast<double>(shards),
      static_cast<double>(bytes) / static_cast<double>(shards * kShardSamples),
      static_cast<double>(mapped_now - std::min(mapped_now, mapped_before)) / (1 << 20));
  EXPECT_LT(bytes, shards * (std::uint64_t{16} << 10U) + (std::uint64_t{4} << 20U));
  EXPECT_EQ(data.shard(static_cast<std::uint32_t>(shards) - 1).label(kShardSamples - 1),
            1000 + static_cast<std::int64_t>(kShardSamples) - 1);
  EXPECT_EQ(data.shard(0).key(17), "k17");
}

// What another process does to the folder of a running loader: an error that names the shard, at once or at
// the next batch from it.
class ChangedUnderALoader : public ::testing::TestWithParam<TransportKind> {
 protected:
  void SetUp() override {
    write_shards(dir_.path(), 4);
    const std::vector<TransportKind> kinds = link_transports(dir_.path());
    if (std::find(kinds.begin(), kinds.end(), GetParam()) == kinds.end())
      GTEST_SKIP() << "no O_DIRECT in " << dir_.path();
    data_ = Dataset::open(dir_.path());
    device_ = make_host_device(1);
    options_ = options_of(GetParam());
    options_.batch_size = 2;
    options_.prefetch = 1;
    loader_.emplace(*data_, device_, options_);
    ASSERT_EQ(check_epoch(*device_, *loader_, 4 * kPerShard, 0), "");
  }
  void expect_error(const char* what) {
    const auto run = [&] {
      for (std::uint64_t epoch = 1; epoch < 4; ++epoch) check_epoch(*device_, *loader_, 4 * kPerShard, epoch);
    };
    EXPECT_SHARD_ERROR(run(), ErrorCode::corrupt, what);
    EXPECT_SHARD_ERROR(loader_->next(), ErrorCode::corrupt, "s2.safetensors");
  }

  TempDir dir_;
  std::optional<Dataset> data_;
  std::shared_ptr<Device> device_;
  LoaderOptions options_;
  std::optional<Loader> loader_;
};

TEST_P(ChangedUnderALoader, AReplacedShardIsNamed) {
  std::filesystem::copy_file(dir_.path() / "s2.safetensors", dir_.path() / "new");
  std::filesystem::rename(dir_.path() / "new", dir_.path() / "s2.safetensors");
  expect_error("was replaced by another one");
}

TEST_P(ChangedUnderALoader, ADeletedShardIsNamed) {
  std::filesystem::remove(dir_.path() / "s2.safetensors");
  expect_error("the file is gone");
}

TEST_P(ChangedUnderALoader, ATruncatedShardIsNamed) {
  std::filesystem::resize_file(dir_.path() / "s2.safetensors", 100);
  expect_error("100 bytes now");
}

INSTANTIATE_TEST_SUITE_P(Transports, ChangedUnderALoader,
                         ::testing::Values(TransportKind::mapped, TransportKind::staged,
                                           TransportKind::direct),
                         [](const auto& kind) { return std::string(to_string(kind.param)); });

}  // namespace
}  // namespace shard::testing
