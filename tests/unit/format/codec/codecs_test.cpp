// The table of codecs: what a new row needs beside it.
#include "format/codec/codecs.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "shard/codec.hpp"
#include "shard/shard_reader.hpp"
#include "support/expect_error.hpp"
#include "support/format/shard_samples.hpp"
#include "support/temp_dir.hpp"

namespace shard {
namespace {

using namespace shard::testing;
namespace fs = std::filesystem;

const fs::path kTests = SHARD_TEST_DATA;

TEST(Codecs, EachHasGoldenShardsAFuzzTargetAndAPartOfTheFormatDocument) {
  std::map<CodecSpec::Kind, int> golden;
  for (const auto& entry : fs::directory_iterator(kTests / "golden" / "shards"))
    ++golden[ShardReader::open(entry.path()).header().codec.kind];
  const std::vector<std::byte> bytes = file_bytes(kTests.parent_path() / "docs" / "format.md");
  const std::string document(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string metadata = document.substr(document.find("| `codec` |"));
  for (const CodecRow& row : codecs()) {
    const std::string name(row.name);
    EXPECT_GE(golden[row.kind], 2) << name << " has too few files in tests/golden/shards (golden_cases.hpp)";
    EXPECT_LT(metadata.find('`' + name), metadata.find('\n'))
        << name << " is not in the row `codec` of docs/format.md, \"Metadata\"";
    if (!row.framed) continue;
    EXPECT_NE(document.find("### Codec " + name + "\n"), std::string::npos)
        << name << " has no section in docs/format.md";
    const std::string target = "fuzz_" + name + "_sample";
    EXPECT_TRUE(fs::exists(kTests / "fuzz" / "format" / (target + ".cpp"))) << name << " has no " << target;
    EXPECT_TRUE(fs::exists(kTests / "fuzz" / "corpus" / target)) << target << " has no corpus";
  }
}

TEST(Codecs, AreNamedOnceAndFoundByTheirValue) {
  std::set<std::string_view> names;
  for (const CodecRow& row : codecs()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " is in two rows";
    EXPECT_EQ(&codec_row(row.kind), &row) << row.name << " has the value of another row";
    const CodecSpec codec = codec_spec_from_string(std::string(row.name));
    EXPECT_EQ(codec, CodecSpec{row.kind});
    EXPECT_EQ(codec_spec_from_string(to_string(codec)), codec);
    EXPECT_EQ(codec.framed(SampleSpec{}), row.framed);
    EXPECT_TRUE(codec.framed(SampleSpec{}.sized(0, 0))) << "each sample has its own size";
    EXPECT_GE(row.frame_alignment, 1U);
  }
  const auto unknown = static_cast<CodecSpec::Kind>(codecs().size());
  EXPECT_SHARD_ERROR(CodecSpec{unknown}.framed(SampleSpec{}), ErrorCode::invalid_argument,
                     "is not known: use none");
  for (const char* const text :
       {"lz4", "", "none:1", "packed:1", "zstd:", "zstd:0", "zstd:20", "zstd:3 ", "jpeg:0", "jpeg:101"})
    EXPECT_SHARD_ERROR(codec_spec_from_string(text), ErrorCode::invalid_argument,
                       "is not known: use none, packed, zstd, jpeg, zstd:LEVEL with a level from 1 to 19 or "
                       "jpeg:QUALITY with a quality from 1 to 100");
}

TEST(Codecs, EachGivesBackTheSamplesThatItCanHold) {
  const std::uint64_t axes[] = {3, 5};
  const std::vector<SampleSpec> specs{{DType::u8, Layout::nhwc, 3, 5, 40},
                                      {DType::f16, Layout::nchw, 3, 5, 40},
                                      {DType::u16, Layout::nhwc, 1, 5, 40},
                                      {DType::u8, Layout::nhwc, 13, 5, 40},
                                      tensor_spec(DType::f32, axes)};
  for (const CodecRow& row : codecs()) {
    const CodecSpec codec{row.kind};
    EXPECT_TRUE(codec.can_hold(specs.front())) << row.name;
    for (const SampleSpec& spec : specs) {
      if (!codec.can_hold(spec)) {
        EXPECT_SHARD_ERROR(Codec(codec, spec), ErrorCode::invalid_argument, row.held);
        continue;
      }
      const Codec coder(codec, spec);
      const bool any_bytes = !is_floating(spec.dtype);  // zeros are floats that were made of bytes
      const std::vector<std::byte> sample =
          any_bytes ? sample_bytes(spec, 1) : std::vector<std::byte>(spec.size_bytes());
      FrameSpec of(spec);
      const std::vector<std::byte> frame = coder.encode(sample, of);
      EXPECT_GE(frame.size(), coder.least_frame_bytes(of)) << row.name;
      EXPECT_LE(frame.size(), coder.most_frame_bytes(of)) << row.name;
      EXPECT_EQ(frame.size() % row.frame_alignment, 0U) << row.name;
      EXPECT_EQ(coder.frame_alignment(), row.frame_alignment);
      std::vector<std::byte> decoded(sample.size());
      coder.decode(frame, decoded, of);
      EXPECT_EQ(coder.lossy(), row.lossy);
      EXPECT_TRUE(row.lossy || decoded == sample) << row.name << " " << to_string(spec.dtype);
      EXPECT_NO_THROW(coder.verify(frame, of));
      EXPECT_SHARD_ERROR(coder.decode(std::span(frame).first(frame.size() - 1), decoded, of),
                         ErrorCode::corrupt, "");
    }
  }
}

}  // namespace
}  // namespace shard
