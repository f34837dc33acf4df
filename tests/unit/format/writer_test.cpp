// ShardWriter's rules and its files: what is refused, what is left behind, what a failure does.
#include "shard/shard_writer.hpp"

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <set>

#include "expect_error.hpp"
#include "shard/dataset.hpp"
#include "shard/file.hpp"
#include "shard_samples.hpp"
#include "temp_dir.hpp"

namespace shard {
namespace {

using namespace shard::testing;

std::set<std::string> names_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

class Writer : public ::testing::Test {
 protected:
  std::filesystem::path path() const { return dir_.path() / "shard"; }
  ShardWriter create(std::uint64_t planned) { return ShardWriter::create(path(), planned, options_); }
  void put(ShardWriter& writer, std::uint64_t index) { put_sample(writer, options_, index); }

  TempDir dir_;
  ShardWriterOptions options_ = small_options();
};

TEST_F(Writer, NothingIsVisibleUnderTheNameBeforePublish) {
  ShardWriter writer = create(1);
  put(writer, 0);
  EXPECT_FALSE(std::filesystem::exists(path()));
  writer.publish();
  EXPECT_EQ(names_in(dir_.path()), (std::set<std::string>{"shard"}));
}

TEST_F(Writer, AWriterThatDoesNotPublishLeavesNothing) {
  {
    ShardWriter writer = create(2);
    put(writer, 0);
    ShardWriter moved = std::move(writer);
    put(moved, 1);
  }
  EXPECT_TRUE(names_in(dir_.path()).empty());
}

TEST_F(Writer, EveryIndexIsStoredOrSkippedOnce) {
  ShardWriter writer = create(3);
  put(writer, 0);
  EXPECT_SHARD_ERROR(put(writer, 0), ErrorCode::invalid_argument, "was stored or skipped before");
  EXPECT_SHARD_ERROR(writer.skip(0), ErrorCode::invalid_argument, "was stored or skipped before");
  EXPECT_SHARD_ERROR(put(writer, 3), ErrorCode::invalid_argument, "3 are planned");
  writer.skip(2);
  EXPECT_SHARD_ERROR(writer.publish(), ErrorCode::invalid_argument, "1 of 3 samples are neither");
  put(writer, 1);
  EXPECT_EQ(writer.publish().samples, 2U);
  EXPECT_SHARD_ERROR(writer.publish(), ErrorCode::invalid_argument, "published before");
  EXPECT_SHARD_ERROR(put(writer, 1), ErrorCode::invalid_argument, "was published");
  verify_shard(ShardReader::open(path()));
}

TEST_F(Writer, AShardOfNothingIsRefused) {
  ShardWriter writer = create(1);
  writer.skip(0);
  EXPECT_SHARD_ERROR(writer.publish(), ErrorCode::invalid_argument, "every sample was skipped");
  EXPECT_SHARD_ERROR(create(0), ErrorCode::invalid_argument, "0 samples planned");
}

TEST_F(Writer, WrongSizesAndKeysAreRefusedAndMayBeRetried) {
  ShardWriter writer = create(1);
  const auto columns = column_bytes(options_.columns, 0);
  const auto sample = sample_bytes(options_.spec, 0);
  EXPECT_SHARD_ERROR(writer.put(0, "k", columns, std::span(sample).first(59)), ErrorCode::invalid_argument,
                     "image of 59 bytes");
  EXPECT_SHARD_ERROR(writer.put(0, "k", {}, sample), ErrorCode::invalid_argument, "columns of 0 bytes");
  EXPECT_SHARD_ERROR(writer.put(0, "a\nb", columns, sample), ErrorCode::invalid_argument,
                     "not an escaped key");
  put(writer, 0);
  writer.publish();
}

TEST_F(Writer, AnExistingFileIsNotOverwritten) {
  write_bytes(path(), {});
  EXPECT_SHARD_ERROR(create(1), ErrorCode::invalid_argument, "exists");
  EXPECT_EQ(std::filesystem::file_size(path()), 0U);
}

TEST_F(Writer, OptionsOutOfBoundsAreRefused) {
  const auto refused = [&](auto&& change, const char* why) {
    ShardWriterOptions options = small_options();
    change(options);
    EXPECT_SHARD_ERROR(ShardWriter::create(path(), 1, options), ErrorCode::invalid_argument, why);
  };
  using O = ShardWriterOptions;
  refused([](O& o) { o.spec.channels = 5; }, "channels is 5");
  refused([](O& o) { o.spec.height = 0; }, "height is 0");
  refused([](O& o) { o.spec.width = 65536; }, "width is 65536");
  refused([](O& o) { o.spec.dtype = DType::i64; }, "dtype is i64");
  refused([](O& o) { o.normalization.std[1] = 0; }, "std of channel 1");
  refused([](O& o) { o.normalization.mean[2] = std::numeric_limits<float>::infinity(); },
          "mean of channel 2");
  refused([](O& o) { o.pipeline["A"] = ""; }, "pipeline key");
  refused([](O& o) { o.pipeline["a"] = "\xff"; }, "not valid UTF-8");
  refused([](O& o) { o.pipeline["a"] = std::string(2'000'000, 'x'); }, "too large");
  refused([](O& o) { o.fingerprint = "0123456789ABCDEF"; }, "16 lower-case");
  refused([](O& o) { o.codec = {Codec::Kind::zstd, 20}; }, "zstd:20");
  refused([](O& o) { o.columns = {}; }, "first column");
  refused([](O& o) { o.columns = {{"labels", DType::u8, {}}}; }, "labels must be");
  refused([](O& o) { o.columns.push_back({"keys", DType::u8, {}}); }, "format uses itself");
  refused([](O& o) { o.columns.push_back({"labels", DType::u8, {}}); }, "stands twice");
  refused([](O& o) { o.columns.push_back({"x", DType::u8, {0}}); }, "a row must have");
  refused([](O& o) { o.columns.push_back({"x", DType::u8, {1U << 31, 1U << 31, 8}}); }, "a row must have");
  EXPECT_SHARD_ERROR(ShardWriter::create(path(), std::uint64_t{1} << 32, small_options()),
                     ErrorCode::invalid_argument, "too much for one shard");
  EXPECT_TRUE(names_in(dir_.path()).empty());
}

TEST_F(Writer, AMissingFolderIsNamed) {
  EXPECT_SHARD_ERROR(ShardWriter::create(dir_.path() / "no" / "shard", 1, options_), ErrorCode::not_found,
                     "no/shard");
}

TEST_F(Writer, TheModeFollowsTheUmaskAndTheBytesDoNot) {
  const mode_t before = ::umask(0027);
  write_shard(path(), options_, 2);
  ::umask(0077);
  write_shard(dir_.path() / "other", options_, 2);
  ::umask(before);
  struct stat status {};
  ASSERT_EQ(::stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640U);
  EXPECT_EQ(file_bytes(path()), file_bytes(dir_.path() / "other"));
}

// A limit on file sizes makes every write beyond it fail, as a full disk does.
TEST_F(Writer, AFailedWriteIsRememberedAndLeavesNothing) {
  for (const Codec& codec :
       {Codec{Codec::Kind::none, 3}, Codec{Codec::Kind::zstd, 3}, Codec{Codec::Kind::packed, 3}}) {
    options_.codec = codec;
    ShardWriter writer = create(3);
    put(writer, 0);
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const rlimit small{100, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    EXPECT_SHARD_ERROR(put(writer, 1), ErrorCode::io, "cannot write");
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_SHARD_ERROR(put(writer, 2), ErrorCode::io, path().native());
    EXPECT_SHARD_ERROR(writer.publish(), ErrorCode::io, "cannot write");
  }
  EXPECT_TRUE(names_in(dir_.path()).empty());
}

TEST_F(Writer, AFailedPublishLeavesNothingEvenWhileTheWriterLives) {
  ShardWriter writer = create(1);
  put(writer, 0);
  std::filesystem::create_directories(path() / "in the way");  // rename cannot replace a folder
  EXPECT_SHARD_ERROR(writer.publish(), ErrorCode::io, "cannot rename");
  EXPECT_EQ(names_in(dir_.path()), (std::set<std::string>{"shard"}));
  EXPECT_SHARD_ERROR(writer.publish(), ErrorCode::io, "cannot rename");
}

TEST_F(Writer, StaleTemporariesAreRemovedAndLiveOnesAreNot) {
  ShardWriter live = create(1);
  put(live, 0);
  const std::string stale = ".shard.999999.0123456789abcdef.part";
  write_bytes(dir_.path() / stale, {});
  for (const char* other : {".hidden", "shard.part", ".shard.12.part", ".shard.x.0123456789abcdef.part",
                            ".s.1.0123456789ABCDEF.part"}) {
    write_bytes(dir_.path() / other, {});
  }
  EXPECT_EQ(names_in(dir_.path()).size(), 7U);
  EXPECT_EQ(remove_stale_temporaries(dir_.path()), 1U);
  EXPECT_FALSE(names_in(dir_.path()).contains(stale));
  EXPECT_EQ(names_in(dir_.path()).size(), 6U);
  EXPECT_EQ(remove_stale_temporaries(dir_.path()), 0U);
  live.publish();
  verify_shard(ShardReader::open(path()));
  EXPECT_SHARD_ERROR(remove_stale_temporaries(dir_.path() / "none"), ErrorCode::not_found, "none");
}

TEST(Files, PublishReplacesTheContent) {
  const TempDir dir;
  publish_file(dir.path() / "f", "first, and longer");
  publish_file(dir.path() / "f", "second");
  const auto bytes = read_file(dir.path() / "f", 100);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), "second");
  EXPECT_EQ(names_in(dir.path()), (std::set<std::string>{"f"}));
}

TEST(Files, ReadingHoldsTheLimitAndNamesThePath) {
  const TempDir dir;
  publish_file(dir.path() / "f", "12345");
  EXPECT_EQ(read_file(dir.path() / "f", 5).size(), 5U);
  EXPECT_SHARD_ERROR(read_file(dir.path() / "f", 4), ErrorCode::resource, "the limit is 4");
  EXPECT_SHARD_ERROR(read_file(dir.path() / "none", 4), ErrorCode::not_found, "none");
  EXPECT_SHARD_ERROR(read_file(dir.path(), 4096), ErrorCode::io, dir.path().native());
  EXPECT_SHARD_ERROR(read_file("/dev/zero", 1000), ErrorCode::resource, "the limit is 1000");
  EXPECT_EQ(read_file("/dev/null", 0).size(), 0U);
  EXPECT_GT(read_file("/proc/self/status", 1 << 20).size(), 100U) << "a file that states no size";
}

TEST(Files, TooManyOpenFilesIsAnErrorOfTheSystem) {
  const TempDir dir;
  publish_file(dir.path() / "f", "12345");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{3, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_SHARD_ERROR(read_file(dir.path() / "f", 10), ErrorCode::io, "Too many open files");
  EXPECT_SHARD_ERROR(ShardReader::open(dir.path() / "f"), ErrorCode::io, "Too many open files");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace shard
