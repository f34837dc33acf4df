// What is put into a shard comes out of it, for every dtype, layout and codec, and the bytes of the file do
// not depend on how.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>
#include <thread>

#include <fmt/format.h>

#include "format/codec/codec_filter.hpp"
#include "shard/dataset.hpp"
#include "support/expect_error.hpp"
#include "support/format/golden_cases.hpp"
#include "support/format/shard_samples.hpp"
#include "support/temp_dir.hpp"

namespace shard {
namespace {

using namespace shard::testing;

constexpr CodecSpec kNone{CodecSpec::Kind::none, 3};
constexpr CodecSpec kZstd{CodecSpec::Kind::zstd, 3};
constexpr CodecSpec kPacked{CodecSpec::Kind::packed, 3};

std::vector<ColumnSpec> many_columns() {
  return {{"labels", DType::i64, {}}, {"mask", DType::u8, {3}},     {"box", DType::f32, {2, 2}},
          {"half", DType::f16, {1}},  {"stamp", DType::u64, {}},    {"flag", DType::boolean, {}},
          {"score", DType::f64, {2}}, {"token", DType::i32, {1, 3}}};
}

// Version 2 of the profile.
std::vector<ColumnSpec> fields() {
  constexpr ColumnKind kRagged = ColumnKind::ragged;
  return {{"labels", DType::i64, {}},
          {"caption", DType::u8, {}, ColumnKind::text},
          {"boxes", DType::f32, {4}, kRagged},
          {"angle", DType::f32, {}},
          {"name", DType::u8, {}, ColumnKind::text},
          {"points", DType::f16, {17, 3}, kRagged},
          {"ids", DType::i64, {}, kRagged},
          {"crowd", DType::u8, {}, kRagged}};
}

// What shardify stores: (byte / 255 - mean) / std of random bytes.
std::vector<std::byte> float_sample(const ShardWriterOptions& options, std::uint64_t seed) {
  const SampleSpec& spec = options.spec;
  const std::size_t plane = std::size_t{spec.height} * spec.width;
  std::mt19937 random(static_cast<unsigned>(seed));
  std::vector<std::byte> sample;
  for (std::size_t i = 0; i < spec.elements(); ++i) {
    const std::size_t channel = spec.layout == Layout::nchw ? i / plane : i % spec.channels;
    const float mean = channel < 3 ? options.normalization.mean[channel] : 0.0F;
    const float std = channel < 3 ? options.normalization.std[channel] : 1.0F;
    const volatile float scaled = static_cast<float>(random() % 256) / 255.0F;  // each step rounds
    const volatile float centered = scaled - mean;
    const float value = centered / std;
    const std::uint32_t bits = spec.dtype == DType::f32   ? std::bit_cast<std::uint32_t>(value)
                               : spec.dtype == DType::f16 ? f32_to_f16(value)
                                                          : f32_to_bf16(value);
    for (std::size_t b = 0; b < size_bytes(spec.dtype); ++b)
      sample.push_back(static_cast<std::byte>(bits >> (8 * b)));
  }
  return sample;
}

void expect_samples(const ShardReader& reader, const ShardWriterOptions& options,
                    const std::vector<std::uint64_t>& kept) {
  ASSERT_EQ(reader.size(), kept.size());
  EXPECT_EQ(reader.header().spec, options.spec);
  EXPECT_EQ(reader.header().normalization, options.normalization);
  EXPECT_EQ(reader.header().provenance, options.provenance);
  EXPECT_EQ(reader.header().codec, options.codec);
  EXPECT_EQ(reader.header().fingerprint, options.fingerprint);
  EXPECT_EQ(reader.header().images_begin % 4096, 0U);
  std::vector<std::byte> out(static_cast<std::size_t>(options.spec.size_bytes()));
  for (std::uint64_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(reader.key(i), sample_key(kept[i]));
    reader.images().read(i, out);
    EXPECT_EQ(out, sample_bytes(options.spec, kept[i])) << "sample " << i;
    for (const ColumnSpec& column : options.columns) {
      const Column& found = reader.columns().at(column.name);
      EXPECT_EQ(found.dtype, column.dtype);
      EXPECT_EQ(found.row_shape, column.row_shape);
      EXPECT_EQ(found.kind, column.kind);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(found.bytes.data()) % size_bytes(column.dtype), 0U)
          << column.name;
    }
    EXPECT_EQ(read_columns(reader, options.columns, i), column_bytes(options.columns, kept[i]))
        << "columns of sample " << i;
  }
  verify_shard(reader);
}

TEST(RoundTrip, EveryDTypeLayoutAndCodecComesBackEqual) {
  const TempDir dir;
  for (DType dtype : {DType::u8, DType::f16, DType::bf16, DType::f32}) {
    for (Layout layout : {Layout::nchw, Layout::nhwc}) {
      for (const CodecSpec& codec : {kNone, kZstd, CodecSpec{CodecSpec::Kind::zstd, 19}, kPacked}) {
        if (codec == kPacked && dtype != DType::u8) continue;  // any bits: see below
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

// Codec packed keeps the bytes that floats were computed from; readers compute them again.
TEST(RoundTrip, PackedFloatsAreTheValuesOfTheUnpackedShardBitForBit) {
  const TempDir dir;
  for (DType dtype : {DType::f16, DType::bf16, DType::f32}) {
    for (Layout layout : {Layout::nchw, Layout::nhwc}) {
      for (std::uint32_t channels = 1; channels <= 4; ++channels) {
        ShardWriterOptions options = small_options(dtype, layout);
        options.spec = {dtype, layout, channels, 16, 48};     // 768 values of a channel: all bytes
        options.normalization.std = {0.9F, 0.225F, 0.0001F};  // of 0.9, bfloat16 has bytes with equal values
        if (dtype == DType::f32)
          options.normalization.mean[1] = 100'000.0F;  // there float32 has such pairs too
        const auto name = [&](const char* what) {
          return dir.path() / fmt::format("{}-{}-{}-{}", what, to_string(dtype), to_string(layout), channels);
        };
        std::vector<std::vector<std::byte>> samples;
        for (std::uint64_t i = 0; i < 3; ++i) samples.push_back(float_sample(options, i));
        const auto write = [&](const std::filesystem::path& path, const CodecSpec& codec) {
          options.codec = codec;
          ShardWriter writer = ShardWriter::create(path, 3, options);
          for (std::uint64_t i = 0; i < 3; ++i)
            writer.put(i, sample_key(i), column_bytes(options.columns, i),
                       samples[static_cast<std::size_t>(i)]);
          writer.publish();
          return ShardReader::open(path);
        };
        const ShardReader plain = write(name("none"), kNone);
        const ShardReader packed = write(name("packed"), kPacked);
        verify_shard(packed);
        EXPECT_EQ(packed.header().spec, plain.header().spec);
        std::vector<std::byte> sample(static_cast<std::size_t>(options.spec.size_bytes()));
        for (std::uint64_t i = 0; i < 3; ++i) {
          packed.images().read(i, sample);
          EXPECT_EQ(sample, samples[static_cast<std::size_t>(i)]);
          EXPECT_EQ(packed.images().checksum(i), plain.images().checksum(i));
          EXPECT_LT(packed.images().frame(i).size(), options.spec.elements() + 32);
        }
      }
    }
  }
}

TEST(RoundTrip, WideSamplesComeBackEqual) {
  const TempDir dir;
  for (const GoldenCase& wide : wide_cases()) {
    for (const char* codec : {"none", "zstd:1"}) {
      SCOPED_TRACE(wide.name + " " + codec);
      ShardWriterOptions options = wide.options;
      options.codec = codec_spec_from_string(codec);
      const std::filesystem::path path = dir.path() / (wide.name + codec[0]);
      write_shard(path, options, 5);
      const ShardReader reader = ShardReader::open(path);
      EXPECT_EQ(reader.header().container.metadata.at("shard.profile"), "2");
      EXPECT_EQ(reader.header().spec, options.spec);
      EXPECT_EQ(reader.header().normalization, options.normalization);
      verify_shard(reader);
      std::vector<std::byte> sample(static_cast<std::size_t>(options.spec.size_bytes()));
      for (std::uint64_t i = 0; i < 5; ++i) {
        reader.images().read(i, sample);
        EXPECT_EQ(sample, sample_bytes(options.spec, i));
      }
    }
  }
}

// What docs/format.md says, on numbers that it works out.
TEST(RoundTrip, TheFilterOfZstdIsTheDocumentedOne) {
  const SampleSpec spec{DType::u16, Layout::nhwc, 2, 1, 3};
  const std::vector<std::uint16_t> values{10, 500, 12, 499, 12, 65535};
  std::vector<std::byte> filtered(12);
  filter_sample(spec, std::as_bytes(std::span(values)), filtered);
  // Left differences: 10, 500, 2, -1, 0, 65036 = -500; folded: 20, 1000, 4, 1, 0, 999.
  const std::vector<unsigned> expected{20, 232, 4, 1, 0, 231, 0, 3, 0, 0, 0, 3};
  for (std::size_t i = 0; i < filtered.size(); ++i)
    EXPECT_EQ(std::to_integer<unsigned>(filtered[i]), expected[i]) << i;
  EXPECT_FALSE(is_filtered({DType::f16, Layout::nchw, 4, 2, 2})) << "version 1 has these without a filter";
  EXPECT_TRUE(is_filtered({DType::f16, Layout::nchw, 5, 2, 2}));
  EXPECT_FALSE(is_filtered({DType::u8, Layout::nchw, 5, 2, 2}));
}

TEST(RoundTrip, PackedRefusesFloatsThatNoByteGives) {
  const TempDir dir;
  for (DType dtype : {DType::f16, DType::bf16, DType::f32}) {
    const ShardWriterOptions options = small_options(dtype, Layout::nchw, kPacked);
    ShardWriter writer = ShardWriter::create(dir.path() / std::string(to_string(dtype)), 1, options);
    std::vector<std::byte> sample = float_sample(options, 0);
    sample[sample.size() - 1] ^= std::byte{0x40};  // the exponent of the last value
    EXPECT_SHARD_ERROR(writer.put(0, "k", column_bytes(options.columns, 0), sample),
                       ErrorCode::invalid_argument, "not a normalised byte value");
  }
}

TEST(RoundTrip, PackedFramesBeginAtMultiplesOf16) {
  const TempDir dir;
  ShardWriterOptions options = small_options(DType::u8, Layout::nhwc, kPacked);
  options.spec.width = 77;
  write_shard(dir.path() / "s", options, 9);
  const ShardReader reader = ShardReader::open(dir.path() / "s");
  for (std::uint64_t i = 0; i < 9; ++i) {
    EXPECT_EQ((reader.images().frame(i).data() - reader.mapping().data()) % 16, 0);
    std::vector<std::byte> sample(static_cast<std::size_t>(options.spec.size_bytes()));
    reader.images().codec().decode(reader.images().frame(i), sample);
    EXPECT_EQ(sample, sample_bytes(options.spec, i));
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

TEST(RoundTrip, RaggedAndTextColumnsComeBackAndMakeItVersion2) {
  const TempDir dir;
  for (const CodecSpec& codec : {kNone, kPacked}) {
    ShardWriterOptions options = small_options(DType::u8, Layout::nhwc, codec);
    write_shard(dir.path() / ("plain" + to_string(codec)), options, 2);
    options.columns = fields();
    const auto path = dir.path() / to_string(codec);
    write_shard(path, options, 9);
    const ShardReader reader = ShardReader::open(path);
    expect_samples(reader, options, {0, 1, 2, 3, 4, 5, 6, 7, 8});
    EXPECT_EQ(reader.header().container.metadata.at("shard.profile"), "2");
    EXPECT_EQ(ShardReader::open(dir.path() / ("plain" + to_string(codec)))
                  .header()
                  .container.metadata.at("shard.profile"),
              "1");
    for (std::uint64_t i = 0; i < 9; ++i) {
      EXPECT_EQ(reader.text(reader.column("caption"), i), sample_text(i));
      const ShardReader::Rows rows = reader.rows_of(reader.column("boxes"), i);
      EXPECT_EQ(rows.count, ragged_rows(i));
      EXPECT_EQ(rows.first, i / 3 * 3 + (i % 3 == 0 ? 0 : i % 3 == 1 ? 1 : 3));
    }
    std::vector<std::byte> out(16);
    EXPECT_SHARD_ERROR(reader.column("box"), ErrorCode::not_found,
                       "has no column \"box\"; it has \"angle\", \"boxes\"");
    EXPECT_SHARD_ERROR(reader.text(reader.column("boxes"), 0), ErrorCode::unsupported, "ragged, not text");
    EXPECT_SHARD_ERROR(reader.read_rows(reader.column("boxes"), 0, out), ErrorCode::unsupported, "ragged");
    EXPECT_SHARD_ERROR(reader.read_column(reader.column("boxes"), 9, out), ErrorCode::invalid_argument,
                       "it has 9");
    const Dataset data = Dataset::open(path);
    EXPECT_EQ(data.text(4, "name"), sample_text(4));
    data.read_column(2, "points", out);
    EXPECT_TRUE(out.empty());
    data.read_column(4, "points", out);
    EXPECT_EQ(out.size(), 2 * 17 * 3 * 2U);
    EXPECT_SHARD_ERROR(data.text(4, "no"), ErrorCode::not_found, "no column \"no\"");
  }
}

TEST(RoundTrip, ColumnsWithoutASingleRowAreSound) {
  const TempDir dir;
  for (const CodecSpec& codec : {kNone, kPacked}) {
    ShardWriterOptions options = small_options(DType::u8, Layout::nhwc, codec);
    options.columns = fields();
    const auto path = dir.path() / to_string(codec);
    ShardWriter writer = ShardWriter::create(path, 2, options);
    for (std::uint64_t i = 0; i < 2; ++i) {
      auto rows = column_rows(options.columns, i);
      for (std::size_t c = 0; c < rows.size(); ++c)
        if (options.columns[c].kind != ColumnKind::fixed) rows[c].clear();
      const std::vector<std::span<const std::byte>> views(rows.begin(), rows.end());
      writer.put(i, sample_key(i), views, sample_bytes(options.spec, i));
    }
    writer.publish();
    const ShardReader reader = ShardReader::open(path);
    verify_shard(reader);
    EXPECT_EQ(reader.text(reader.column("caption"), 1), "");
    EXPECT_EQ(reader.rows_of(reader.column("boxes"), 1).count, 0U);
    EXPECT_EQ(reader.columns().at("angle").bytes.size(), 8U);
  }
}

TEST(RoundTrip, FrameOfCodecNoneIsTheRowInTheMapping) {
  const TempDir dir;
  const ShardWriterOptions options = small_options(DType::f16);
  write_shard(dir.path() / "a", options, 3);
  const ShardReader reader = ShardReader::open(dir.path() / "a");
  const auto frame = reader.images().frame(2);
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
    const auto rows = column_rows(options.columns, index);
    const std::vector<std::span<const std::byte>> views(rows.begin(), rows.end());
    writer.put(i, sample_key(index), views, sample_bytes(options.spec, index));
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
  for (const CodecSpec& codec : {kNone, kZstd, kPacked}) {
    for (const auto& kept : {some, all, last}) {
      const DType dtype = codec == kPacked ? DType::u8 : DType::f16;
      ShardWriterOptions options = small_options(dtype, Layout::nchw, codec);
      options.columns = kept == some ? fields() : many_columns();
      const auto expected = plain_shard(options, kept);
      unsigned seed = 0;
      for (unsigned threads : {1U, 2U, 8U}) {
        for (std::uint64_t hint :
             {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{400 * 22}, std::uint64_t{1} << 20}) {
          options.planned_key_bytes = hint;
          options.planned_rows.assign(hint == 0 ? 0 : options.columns.size(), hint / 100);
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
    options.provenance["note"] = std::string(length, 'x');
    const auto path = dir.path() / std::to_string(length);
    write_shard(path, options, 1);
    const ShardReader reader = ShardReader::open(path);
    EXPECT_EQ(reader.header().images_begin % 4096, 0U);
    EXPECT_EQ(reader.header().provenance, options.provenance);
  }
}

}  // namespace
}  // namespace shard
