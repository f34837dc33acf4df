// ShardWriter's rules and its files: what is refused, what is left behind, what a failure does.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <set>
#include <vector>

#include "base/files/file.hpp"
#include "base/files/publish.hpp"
#include "shard/shard_writer.hpp"
#include "support/expect_error.hpp"
#include "support/format/shard_samples.hpp"
#include "support/temp_dir.hpp"

namespace shard {
namespace {

using namespace shard::testing;

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
  EXPECT_SHARD_ERROR(writer.put(0, "k", std::span<const std::byte>(), sample), ErrorCode::invalid_argument,
                     "columns of 0 bytes");
  EXPECT_SHARD_ERROR(writer.put(0, "a\nb", columns, sample), ErrorCode::invalid_argument,
                     "not an escaped key");
  put(writer, 0);
  writer.publish();
}

TEST_F(Writer, RowsOfTheWrongLengthAndTextThatIsNoneAreRefusedAndMayBeRetried) {
  options_.columns.push_back({"caption", DType::u8, {}, ColumnKind::text});
  options_.columns.push_back({"boxes", DType::f32, {4}, ColumnKind::ragged});
  ShardWriter writer = create(1);
  const auto sample = sample_bytes(options_.spec, 0);
  const auto refused = [&](std::size_t labels, std::string_view text, std::size_t boxes, const char* why) {
    const std::vector<std::byte> zeros(100);
    const std::vector<std::span<const std::byte>> rows{
        std::span(zeros).first(labels), std::as_bytes(std::span(text)), std::span(zeros).first(boxes)};
    EXPECT_SHARD_ERROR(writer.put(0, "k", rows, sample), ErrorCode::invalid_argument, why);
  };
  refused(7, "", 16, "column \"labels\" of 7 bytes");
  refused(8, "", 12, "column \"boxes\" of 12 bytes: a multiple of 16");
  refused(8, "\xff", 16, "text of column \"caption\" is not UTF-8");
  refused(8, "\xed\xa0\x80", 16, "is not UTF-8");
  EXPECT_SHARD_ERROR(writer.put(0, "k", column_bytes(options_.columns, 0), sample),
                     ErrorCode::invalid_argument, "columns of");
  const std::vector<std::byte> label(8);
  const std::vector<std::span<const std::byte>> one{label};
  EXPECT_SHARD_ERROR(writer.put(0, "k", one, sample), ErrorCode::invalid_argument, "rows of 1 columns");
  put_sample(writer, options_, 0);
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
  refused([](O& o) { o.spec.channels = 4097; }, "channels is 4097: it must be 1 to 4096");
  refused([](O& o) { o.spec = {DType::f32, Layout::nchw, 4096, 65535, 65535}; }, "at most 68719476736");
  refused([](O& o) { o.spec.dtype = DType::i16; }, "it must be u8, u16, f16, bf16 or f32");
  refused([](O& o) { o.spec.axes[0] = 3; }, "axes: only those of layout tensor do");
  refused([](O& o) { o.spec.layout = Layout::tensor; }, "a sample with 0 axes");
  refused(
      [](O& o) {
        o.spec = tensor_spec(DType::f32, std::vector<std::uint64_t>{4, 3});
      },
      "samples of layout tensor have a mean and std");
  refused(
      [](O& o) {
        o.spec = tensor_spec(DType::f32, std::vector<std::uint64_t>{4, 3});
        o.spec.width = 13;
      },
      "contradict each other");
  refused([](O& o) { o.normalization.mean = {0.5F}; }, "mean has 1 numbers and std 3");
  refused([](O& o) { o.normalization = {{0, 0}, {1, 1}}; }, "have 2 numbers: they must have 3");
  refused([](O& o) { o.normalization = {{0, 0, 0, 0}, {1, 1, 1, 1}}; }, "have 4 numbers: they must have 3");
  refused(
      [](O& o) {
        o.spec.dtype = DType::u16;
        o.codec.kind = CodecSpec::Kind::packed;
      },
      "codec packed holds images of 8 bits and up to 4 channels, not u16");
  refused(
      [](O& o) {
        o.spec.channels = 5;
        o.codec.kind = CodecSpec::Kind::packed;
      },
      "use zstd or none");
  refused([](O& o) { o.spec.height = 0; }, "height is 0");
  refused([](O& o) { o.spec.width = 65536; }, "width is 65536");
  refused([](O& o) { o.spec.dtype = DType::i64; }, "dtype is i64");
  refused([](O& o) { o.normalization.std[1] = 0; }, "std of channel 1");
  refused([](O& o) { o.normalization.mean[2] = std::numeric_limits<float>::infinity(); },
          "mean of channel 2");
  refused([](O& o) { o.provenance["A"] = ""; }, "pipeline key");
  refused([](O& o) { o.provenance["a"] = "\xff"; }, "not valid UTF-8");
  refused([](O& o) { o.provenance["a"] = std::string(2'000'000, 'x'); }, "too large");
  refused([](O& o) { o.fingerprint = "0123456789ABCDEF"; }, "16 lower-case");
  refused([](O& o) { o.codec = {CodecSpec::Kind::zstd, 20}; }, "zstd:20");
  refused([](O& o) { o.columns = {}; }, "first column");
  refused([](O& o) { o.columns = {{"labels", DType::u8, {}}}; }, "labels must be");
  refused([](O& o) { o.columns.push_back({"keys", DType::u8, {}}); }, "reserved by the format");
  refused([](O& o) { o.columns.push_back({"labels", DType::u8, {}}); }, "occurs twice");
  refused([](O& o) { o.columns.push_back({"x", DType::u8, {0}}); }, "a row must have");
  refused([](O& o) { o.columns.push_back({"x", DType::u8, {1U << 31, 1U << 31, 8}}); }, "a row must have");
  constexpr ColumnKind kRagged = ColumnKind::ragged;
  constexpr ColumnKind kText = ColumnKind::text;
  refused([](O& o) { o.columns.push_back({"key", DType::u8, {}, kText}); }, "key_offsets is reserved");
  refused(
      [](O& o) {
        o.columns.push_back({"frame", DType::f32, {2}, kRagged});
      },
      "frame_offsets is reserved");
  refused([](O& o) { o.columns.push_back({"x", DType::i8, {}, kText}); }, "they must be u8 []");
  refused([](O& o) { o.columns.push_back({"x", DType::u8, {3}, kText}); }, "u8 [3]: they must be u8 []");
  refused([](O& o) { o.columns[0].kind = kRagged; }, "labels must be");
  refused(
      [](O& o) {
        o.columns.push_back({"x_offsets", DType::u64, {}});
        o.columns.push_back({"x", DType::f32, {4}, kRagged});
      },
      "\"x_offsets\": it is the name of the offsets");
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
  for (const CodecSpec& codec : {CodecSpec{CodecSpec::Kind::none, 3}, CodecSpec{CodecSpec::Kind::zstd, 3},
                                 CodecSpec{CodecSpec::Kind::packed, 3}}) {
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

TEST_F(Writer, AShardThatIsThereStaysWhenItIsTheSameAndIsReplacedWhenItIsNot) {
  const auto make = [&](const ShardSummary* expected = nullptr) {
    ShardWriter writer = create(2);
    for (std::uint64_t i = 0; i < 2; ++i) put(writer, i);
    return writer.publish(expected);
  };
  const auto inode = [&] {
    struct stat status {};
    EXPECT_EQ(::stat(path().c_str(), &status), 0);
    return status.st_ino;
  };
  const ShardSummary first = make();
  const auto bytes = read_file(path(), 1 << 20);
  const auto before = inode();
  options_.may_exist = true;
  EXPECT_EQ(make(&first), first);
  EXPECT_EQ(inode(), before);
  auto damaged = bytes;
  damaged.back() ^= std::byte{1};
  write_bytes(path(), damaged);
  EXPECT_EQ(make(), first);
  EXPECT_EQ(read_file(path(), 1 << 20), bytes);
  ShardSummary other = first;
  other.head_digest ^= 1U;
  EXPECT_SHARD_ERROR(make(&other), ErrorCode::corrupt, "made again");
  EXPECT_EQ(read_file(path(), 1 << 20), bytes);
  EXPECT_EQ(names_in(dir_.path()), std::set<std::string>{"shard"});
}

}  // namespace
}  // namespace shard
