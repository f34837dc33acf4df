// What is put into a shard comes out of it, for every dtype, layout and codec, and the bytes of the file do
// not depend on how.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "expect_error.hpp"
#include "shard_samples.hpp"
#include "temp_dir.hpp"

namespace shard {
namespace {

using namespace shard::testing;

constexpr Codec kNone{Codec::Kind::none, 3};
constexpr Codec kZstd{Codec::Kind::zstd, 3};

std::vector<ColumnSpec> many_columns() {
  return {{"labels", DType::i64, {}}, {"mask", DType::u8, {3}},     {"box", DType::f32, {2, 2}},
          {"half", DType::f16, {1}},  {"stamp", DType::u64, {}},    {"flag", DType::boolean, {}},
          {"score", DType::f64, {2}}, {"token", DType::i32, {1, 3}}};
}

void expect_samples(const ShardReader& reader, const ShardWriterOptions& options,
                    const std::vector<std::uint64_t>& kept) {
  ASSERT_EQ(reader.size(), kept.size());
  EXPECT_EQ(reader.header().spec, options.spec);
  EXPECT_EQ(reader.header().normalization, options.normalization);
  EXPECT_EQ(reader.header().pipeline, options.pipeline);
  EXPECT_EQ(reader.header().codec, options.codec);
  EXPECT_EQ(reader.header().fingerprint, options.fingerprint);
  EXPECT_EQ(reader.header().images_begin % 4096, 0U);
  std::vector<std::byte> out(static_cast<std::size_t>(options.spec.size_bytes()));
  for (std::uint64_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(reader.key(i), sample_key(kept[i]));
    reader.read(i, out);
    EXPECT_EQ(out, sample_bytes(options.spec, kept[i])) << "sample " << i;
    std::vector<std::byte> row;
    for (const ColumnSpec& column : options.columns) {
      const Column& found = reader.columns().at(column.name);
      EXPECT_EQ(found.dtype, column.dtype);
      EXPECT_EQ(found.row_shape, column.row_shape);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(found.bytes.data()) % size_bytes(column.dtype), 0U)
          << column.name;
      const auto bytes = found.bytes.subspan(static_cast<std::size_t>(i * found.row_bytes),
                                             static_cast<std::size_t>(found.row_bytes));
      row.insert(row.end(), bytes.begin(), bytes.end());
    }
    EXPECT_EQ(row, column_bytes(options.columns, kept[i])) << "columns of sample " << i;
  }
  verify_shard(reader);
}

TEST(RoundTrip, EveryDTypeLayoutAndCodecComesBackEqual) {
  const TempDir dir;
  for (DType dtype : {DType::u8, DType::f16, DType::bf16, DType::f32}) {
    for (Layout layout : {Layout::nchw, Layout::nhwc}) {
      for (const Codec& codec : {kNone, kZstd, Codec{Codec::Kind::zstd, 19}}) {
        ShardWriterOptions options = small_options(dtype, layout, codec);
        options.columns = many_columns();
        const auto path =
            dir.path() / (std::string(to_string(dtype)) + std::string(to_string(layout)) + to_string(codec));
        const ShardSummary summary = write_shard(path, options, 7);
        EXPECT_EQ(summary.samples, 7U);
        EXPECT_EQ(summary.file, path.filename());
        EXPECT_EQ(summary.size_bytes, std::filesystem::file_size(path));
        const ShardReader reader = ShardReader::open(path);
        EXPECT_EQ(summary.head_digest, reader.header().head_digest);
        expect_samples(reader, options, {0, 1, 2, 3, 4, 5, 6});
        EXPECT_EQ(reader.label(3), 3);
      }
    }
  }
}

TEST(RoundTrip, FloatLabelsFromATableComeBack) {
  const TempDir dir;
  ShardWriterOptions options = small_options();
  options.columns = {{"labels", DType::f32, {4}}};
  write_shard(dir.path() / "a", options, 3);
  const ShardReader reader = ShardReader::open(dir.path() / "a");
  expect_samples(reader, options, {0, 1, 2});
  EXPECT_SHARD_ERROR(reader.label(0), ErrorCode::unsupported, "columns()");
}

TEST(RoundTrip, FrameOfCodecNoneIsTheRowInTheMapping) {
  const TempDir dir;
  const ShardWriterOptions options = small_options(DType::f16);
  write_shard(dir.path() / "a", options, 3);
  const ShardReader reader = ShardReader::open(dir.path() / "a");
  const auto frame = reader.frame(2);
  EXPECT_EQ(frame.data(),
            reader.mapping().data() + reader.header().images_begin + 2 * options.spec.size_bytes());
  EXPECT_TRUE(std::ranges::equal(frame, sample_bytes(options.spec, 2)));
}

// Puts `kept` of `planned` samples in a shuffled order from `threads` threads.
std::vector<std::byte> shuffled_shard(const ShardWriterOptions& options, std::uint64_t planned,
                                      const std::vector<std::uint64_t>& kept, unsigned threads,
                                      unsigned seed) {
  const TempDir dir;
  const auto path = dir.path() / "shard";
  ShardWriter writer = ShardWriter::create(path, planned, options);
  std::vector<std::uint64_t> order(planned);
  for (std::uint64_t i = 0; i < planned; ++i) order[static_cast<std::size_t>(i)] = i;
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  std::vector<std::thread> workers;
  for (unsigned t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      for (std::size_t i = t; i < order.size(); i += threads) {
        if (std::binary_search(kept.begin(), kept.end(), order[i])) {
          put_sample(writer, options, order[i]);
        } else {
          writer.skip(order[i]);
        }
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  writer.publish();
  expect_samples(ShardReader::open(path), options, kept);
  return file_bytes(path);
}

// The canonical bytes: only the kept samples, one after the other, with the same keys.
std::vector<std::byte> plain_shard(const ShardWriterOptions& options,
                                   const std::vector<std::uint64_t>& kept) {
  const TempDir dir;
  const auto path = dir.path() / "shard";
  ShardWriter writer = ShardWriter::create(path, kept.size(), options);
  for (std::uint64_t i = 0; i < kept.size(); ++i) {
    const std::uint64_t index = kept[static_cast<std::size_t>(i)];
    writer.put(i, sample_key(index), column_bytes(options.columns, index), sample_bytes(options.spec, index));
  }
  writer.publish();
  return file_bytes(path);
}

TEST(RoundTrip, BytesAreAFunctionOfTheSamplesWhateverOrderThreadsSkipsAndHints) {
  std::vector<std::uint64_t> some;
  for (std::uint64_t i = 0; i < 400; ++i) {
    if (i % 7 != 0 && i / 10 != 13) some.push_back(i);
  }
  std::vector<std::uint64_t> all(400);
  for (std::uint64_t i = 0; i < 400; ++i) all[static_cast<std::size_t>(i)] = i;
  const std::vector<std::uint64_t> last{399};
  for (const Codec& codec : {kNone, kZstd}) {
    for (const auto& kept : {some, all, last}) {
      ShardWriterOptions options = small_options(DType::f16, Layout::nchw, codec);
      options.columns = many_columns();
      const auto expected = plain_shard(options, kept);
      unsigned seed = 0;
      for (unsigned threads : {1U, 2U, 8U}) {
        for (std::uint64_t hint :
             {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{400 * 22}, std::uint64_t{1} << 20}) {
          options.planned_key_bytes = hint;
          const auto found = shuffled_shard(options, 400, kept, threads, ++seed);
          EXPECT_TRUE(found == expected)
              << threads << " threads, hint " << hint << ", " << kept.size() << " kept, " << to_string(codec);
        }
      }
    }
  }
}

TEST(RoundTrip, ImagesBeginOnAPageForEveryLengthOfTheHead) {
  const TempDir dir;
  ShardWriterOptions options = small_options();
  for (std::size_t length = 0; length < 400; length += 3) {
    options.pipeline["note"] = std::string(length, 'x');
    const auto path = dir.path() / std::to_string(length);
    write_shard(path, options, 1);
    const ShardReader reader = ShardReader::open(path);
    EXPECT_EQ(reader.header().images_begin % 4096, 0U);
    EXPECT_EQ(reader.header().pipeline, options.pipeline);
  }
}

}  // namespace
}  // namespace shard
