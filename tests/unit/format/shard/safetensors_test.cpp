// The safetensors container: what is valid, and every abuse with the rule it breaks.
#include <gtest/gtest.h>

#include <ctime>
#include <iostream>
#include <string>

#include "shard/safetensors.hpp"
#include "shard/shard_reader.hpp"
#include "support/expect_error.hpp"
#include "support/memory_file.hpp"

namespace shard {
namespace {

std::vector<std::byte> head_of(const std::string& json) {
  std::vector<std::byte> head;
  for (std::size_t i = 0; i < 8; ++i) head.push_back(static_cast<std::byte>(json.size() >> (8 * i)));
  for (char c : json) head.push_back(static_cast<std::byte>(c));
  return head;
}

// Parses `json` as the header of a file with `data_bytes` bytes of data.
SafetensorsHeader parse(const std::string& json, std::uint64_t data_bytes = 0) {
  return parse_safetensors(head_of(json), 8 + json.size() + data_bytes);
}

std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape,
                   const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":[" + shape + "],\"data_offsets\":[" +
         offsets + "]}";
}

TEST(Safetensors, ReadsAPlainHeader) {
  const auto header = parse("{" + tensor("b", "F32", "2,1", "4,12") + "," + tensor("a", "U8", "4", "0,4") +
                                ",\"__metadata__\":{\"k\":\"v\"}}   ",
                            12);
  ASSERT_EQ(header.tensors.size(), 2U);
  EXPECT_EQ(header.tensors[0].name, "a");
  EXPECT_EQ(header.tensors[1].name, "b");
  EXPECT_EQ(header.tensors[1].dtype, DType::f32);
  EXPECT_EQ(header.tensors[1].shape, (std::vector<std::uint64_t>{2, 1}));
  EXPECT_EQ(header.tensors[1].begin, 4U);
  EXPECT_EQ(header.tensors[1].end, 12U);
  EXPECT_EQ(header.metadata.at("k"), "v");
  EXPECT_EQ(header.find("c"), nullptr);
}

TEST(Safetensors, ReadsScalarsEmptyTensorsAndAnEmptyTable) {
  EXPECT_TRUE(parse("{}").tensors.empty());
  EXPECT_TRUE(parse("{\"__metadata__\":{}}").metadata.empty());
  EXPECT_EQ(parse("{" + tensor("s", "I16", "", "0,2") + "}", 2).tensors[0].size_bytes(), 2U);
  EXPECT_EQ(parse("{" + tensor("e", "F64", "0,7", "0,0") + "}").tensors[0].size_bytes(), 0U);
}

TEST(Safetensors, WrittenHeaderReadsBackEqual) {
  SafetensorsHeader header;
  header.metadata = {{"quote\"", "line\nbreak"}, {"\xc3\xa9", ""}};
  header.tensors = {{"x", DType::i64, {3}, 0, 24}, {"y\\", DType::boolean, {1, 1}, 24, 25}};
  const std::string text = serialize_safetensors_header(header);
  EXPECT_EQ(text.size() % 8, 0U);
  const auto* const first = reinterpret_cast<const std::byte*>(text.data());
  const auto parsed = parse_safetensors({first, text.size()}, text.size() + 25);
  EXPECT_EQ(parsed.metadata, header.metadata);
  ASSERT_EQ(parsed.tensors.size(), 2U);
  EXPECT_EQ(parsed.tensors[1].name, "y\\");
  EXPECT_EQ(parsed.data_begin, text.size());
}

TEST(Safetensors, WritingRefusesAHole) {
  SafetensorsHeader header;
  header.tensors = {{"x", DType::u8, {3}, 1, 4}};
  EXPECT_SHARD_ERROR(serialize_safetensors_header(header), ErrorCode::invalid_argument, "must start at 0");
}

struct Abuse {
  const char* name;
  std::string json;
  std::uint64_t data_bytes;
  const char* message;
};

class Abused : public ::testing::TestWithParam<Abuse> {};

TEST_P(Abused, IsRefusedWithTheRuleItBreaks) {
  EXPECT_SHARD_ERROR(parse(GetParam().json, GetParam().data_bytes), ErrorCode::corrupt, GetParam().message);
}

std::string many(std::size_t count, const std::string& piece) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += piece;
  return text;
}

INSTANTIATE_TEST_SUITE_P(
    Headers, Abused,
    ::testing::Values(
        Abuse{"Overlap", "{" + tensor("a", "U8", "4", "0,4") + "," + tensor("b", "U8", "4", "2,6") + "}", 6,
              "overlap"},
        Abuse{"SameRange", "{" + tensor("a", "U8", "4", "0,4") + "," + tensor("b", "U8", "4", "0,4") + "}", 4,
              "overlap"},
        Abuse{"Hole", "{" + tensor("a", "U8", "4", "0,4") + "," + tensor("b", "U8", "1", "5,6") + "}", 6,
              "a hole"},
        Abuse{"HoleAtTheStart", "{" + tensor("a", "U8", "4", "1,5") + "}", 5, "a hole"},
        Abuse{"DataAfterTheLast", "{" + tensor("a", "U8", "4", "0,4") + "}", 5, "which has 5"},
        Abuse{"NoTensorsButData", "{}", 1, "which has 1"},
        Abuse{"BeyondTheFile", "{" + tensor("a", "U8", "4", "0,4") + "}", 3,
              "ends at byte 4 of the data, which has 3"},
        Abuse{"BackwardRange", "{" + tensor("a", "U8", "4", "4,0") + "}", 4, "after its end"},
        Abuse{"WrongShape", "{" + tensor("a", "U8", "5", "0,4") + "}", 4, "shape and dtype make 5"},
        Abuse{"WrongDType", "{" + tensor("a", "F32", "4", "0,4") + "}", 4, "shape and dtype make 16"},
        Abuse{"OverflowingShape", "{" + tensor("a", "U8", "4294967296,4294967296", "0,0") + "}", 0,
              "overflows"},
        Abuse{"OverflowingElements", "{" + tensor("a", "F64", "2305843009213693952", "0,0") + "}", 0,
              "overflows"},
        Abuse{"OverflowToZeroTimesZero", "{" + tensor("a", "U8", "4294967296,4294967296,0", "0,0") + "}", 0,
              "overflows"},
        Abuse{"NumberAbove64Bits", "{" + tensor("a", "U8", "18446744073709551616", "0,0") + "}", 0,
              "not an integer"},
        Abuse{"NegativeShape", "{" + tensor("a", "U8", "-1", "0,0") + "}", 0,
              "shape holds a negative number"},
        Abuse{"FloatShape", "{" + tensor("a", "U8", "4.0", "0,4") + "}", 4, "not an integer"},
        Abuse{"NegativeOffset", "{" + tensor("a", "U8", "4", "-4,0") + "}", 4,
              "data_offsets holds a negative number"},
        Abuse{"FloatOffset", "{" + tensor("a", "U8", "4", "0,4.0") + "}", 4,
              "data_offsets holds the number 4.0"},
        Abuse{"ExponentOffset", "{" + tensor("a", "U8", "4", "0,4e0") + "}", 4,
              "data_offsets holds the number 4e0"},
        Abuse{"OneOffset", "{" + tensor("a", "U8", "4", "0") + "}", 4, "needs two"},
        Abuse{"ThreeOffsets", "{" + tensor("a", "U8", "4", "0,4,4") + "}", 4, "more than two"},
        Abuse{"StringOffset", "{" + tensor("a", "U8", "4", "0,\"4\"") + "}", 4,
              "data_offsets holds a string"},
        Abuse{"UnknownDType", "{" + tensor("a", "u8", "4", "0,4") + "}", 4, "not known"},
        Abuse{"NumberForDType", "{\"a\":{\"dtype\":1,\"shape\":[],\"data_offsets\":[0,1]}}", 1,
              "is a number"},
        Abuse{"NoShape", "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, "has no shape"},
        Abuse{"NoDType", "{\"a\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "has no dtype"},
        Abuse{"NoOffsets", "{\"a\":{\"shape\":[1],\"dtype\":\"U8\"}}", 1, "has no data_offsets"},
        Abuse{"TwoShapes", "{\"a\":{\"shape\":[1],\"shape\":[1],\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1,
              "only one"},
        Abuse{"TwoDTypes", "{\"a\":{\"shape\":[1],\"dtype\":\"U8\",\"dtype\":\"U8\",\"data_offsets\":[0,1]}}",
              1, "two dtypes"},
        Abuse{"UnknownMember", "{\"a\":{\"shape\":[1],\"dtype\":\"U8\",\"data_offsets\":[0,1],\"x\":\"\"}}",
              1, "\"x\""},
        Abuse{"DuplicateNames",
              "{" + tensor("a", "U8", "0", "0,0") + "," + tensor("a", "U8", "4", "0,4") + "}", 4,
              "occurs twice"},
        Abuse{"DuplicateByEscape",
              "{" + tensor("a", "U8", "0", "0,0") + "," + tensor("\\u0061", "U8", "4", "0,4") + "}", 4,
              "occurs twice"},
        Abuse{"TensorIsANumber", "{\"a\":1}", 0, "must be an object"},
        Abuse{"TensorIsNull", "{\"a\":null}", 0, "is null"},
        Abuse{"MetadataNumber", "{\"__metadata__\":{\"k\":1}}", 0, "must be a string"},
        Abuse{"MetadataObject", "{\"__metadata__\":{\"k\":{}}}", 0, "must be a string"},
        Abuse{"MetadataArray", "{\"__metadata__\":[]}", 0, "must be an object"},
        Abuse{"MetadataTwice", "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "occurs twice"},
        Abuse{"MetadataKeyTwice", "{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0, "names \"k\" twice"},
        Abuse{"LeadingSpace", " {}", 0, "start with '{'"},
        Abuse{"LeadingByteOrderMark", "\xef\xbb\xbf{}", 0, "start with '{'"},
        Abuse{"Array", "[]", 0, "start with '{'"}, Abuse{"Empty", "", 0, "start with '{'"},
        Abuse{"OnlySpaces", "    ", 0, "start with '{'"}, Abuse{"Unterminated", "{\"a", 0, "not valid JSON"},
        Abuse{"TrailingComma", "{\"__metadata__\":{},}", 0, "not valid JSON"},
        Abuse{"SecondDocument", "{}{}", 0, "not valid JSON"},
        Abuse{"NulAfterTheEnd", std::string("{}\0junk", 7), 0, "more text after the end"},
        Abuse{"InvalidUtf8", "{\"\xff\":{}}", 0, "not valid JSON"},
        Abuse{"LoneSurrogate", "{\"\\ud800\":{}}", 0, "not valid JSON"},
        Abuse{"DeepObjects", many(100'000, "{\"a\":"), 0, "an object"},
        Abuse{"DeepArrays", "{\"a\":" + many(100'000, "["), 0, "an array"},
        Abuse{"DeepShape", "{\"a\":{\"shape\":" + many(100'000, "["), 0, "an array"},
        Abuse{"ManyAxes", "{" + tensor("a", "U8", many(100, "1,") + "1", "0,1") + "}", 1,
              "more than 64 axes"}),
    [](const auto& abuse) { return abuse.param.name; });

TEST(Safetensors, DTypesOfTheReferenceThatAreNotHandledAreListedWithTheirSizes) {
  struct Case {
    const char* dtype;
    std::uint64_t bytes_of_eight;
  };
  for (const Case& one :
       {Case{"F8_E4M3", 8}, Case{"F8_E5M2", 8}, Case{"F8_E8M0", 8}, Case{"F8_E4M3FNUZ", 8},
        Case{"F8_E5M2FNUZ", 8}, Case{"F6_E2M3", 6}, Case{"F6_E3M2", 6}, Case{"F4", 4}, Case{"C64", 64}}) {
    SCOPED_TRACE(one.dtype);
    const auto file = [&](const char* shape, std::uint64_t bytes) {
      return parse("{" + tensor("a", one.dtype, shape, "0," + std::to_string(bytes)) + "}", bytes);
    };
    const SafetensorsHeader header = file("2,4", one.bytes_of_eight);
    EXPECT_EQ(header.tensors.at(0).dtype_name(), one.dtype);
    EXPECT_EQ(header.tensors.at(0).foreign_dtype, one.dtype);
    EXPECT_EQ(header.tensors.at(0).size_bytes(), one.bytes_of_eight);
    EXPECT_NE(serialize_safetensors_header(header).find(one.dtype), std::string::npos);
    EXPECT_SHARD_ERROR(file("2,4", one.bytes_of_eight + 1), ErrorCode::corrupt, "shape and dtype make");
    EXPECT_SHARD_ERROR(file("2,4", one.bytes_of_eight - 1), ErrorCode::corrupt, "shape and dtype make");
  }
  EXPECT_EQ(parse("{" + tensor("a", "F4", "3,0", "0,0") + "}", 0).tensors.at(0).size_bytes(), 0U);
  EXPECT_EQ(parse("{" + tensor("a", "U8", "1", "0,1") + "}", 1).tensors.at(0).dtype_name(), "U8");
}

TEST(Safetensors, ElementsBelowAByteMustFillWholeBytes) {
  EXPECT_SHARD_ERROR(parse("{" + tensor("a", "F4", "3", "0,1") + "}", 1), ErrorCode::corrupt, "take 12 bits");
  EXPECT_SHARD_ERROR(parse("{" + tensor("a", "F4", "3", "0,2") + "}", 2), ErrorCode::corrupt, "take 12 bits");
  EXPECT_SHARD_ERROR(parse("{" + tensor("a", "F6_E2M3", "5", "0,3") + "}", 3), ErrorCode::corrupt,
                     "take 30 bits");
  EXPECT_SHARD_ERROR(parse("{" + tensor("a", "F3", "8", "0,3") + "}", 3), ErrorCode::corrupt, "not known");
}

TEST(Safetensors, AHeaderLengthAboveTheCapIsRefusedWhateverTheFile) {
  std::vector<std::byte> head = head_of("{}");
  const auto set_length = [&](std::uint64_t length) {
    for (std::size_t i = 0; i < 8; ++i) head[i] = static_cast<std::byte>(length >> (8 * i));
  };
  for (std::uint64_t length :
       {std::uint64_t{100'000'001}, std::uint64_t{1} << 63, ~std::uint64_t{0}, ~std::uint64_t{0} - 7}) {
    set_length(length);
    EXPECT_SHARD_ERROR(parse_safetensors(head, 10), ErrorCode::corrupt, "at most 100000000");
    EXPECT_SHARD_ERROR(parse_safetensors(head, ~std::uint64_t{0}), ErrorCode::corrupt, "at most 100000000");
  }
  set_length(100'000'000);
  EXPECT_SHARD_ERROR(parse_safetensors(head, 10), ErrorCode::corrupt, "has only 10 bytes");
  EXPECT_SHARD_ERROR(parse_safetensors(head, 200'000'000), ErrorCode::corrupt,
                     "only 10 of its 100000008 bytes");
  EXPECT_SHARD_ERROR(parse_safetensors(std::span(head).first(7), 7), ErrorCode::corrupt, "7 bytes");
}

// Hostile headers near the cap: refused, and soon, also under sanitizers.
class LargeHeader : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(LargeHeader, IsRefused) {
  constexpr std::size_t kBytes = 99'999'000;
  std::string json = GetParam().first;
  const std::string piece = GetParam().second;
  json.reserve(kBytes + piece.size());
  while (json.size() < kBytes) json += piece;
  const auto head = head_of(json);
  const std::clock_t begin = std::clock();  // of this process: the machine may be busy
  EXPECT_THROW(parse_safetensors(head, head.size()), Error);
  const double took_s = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  std::cout << "refused after " << took_s << " s of CPU time\n";
  EXPECT_LT(took_s, 2.0);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, LargeHeader,
    ::testing::Values(std::pair{"{\"", "aaaaaaaaaaaaaaaa"}, std::pair{"{", "                "},
                      std::pair{"{\"a\":{\"shape\":[", "0,0,0,0,0,0,0,0,"},
                      std::pair{"{\"a\":", "[[[[[[[[[[[[[[[["},
                      std::pair{"{\"__metadata__\":{\"k\":\"", "\\u0061\\u0061"},
                      std::pair{"{\"a\":{\"dtype\":\"", "UUUUUUUU"},
                      std::pair{"{", "\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},"}));

TEST(LargeHeaderFile, IsRefusedAsAShardWithoutReadingIt) {
  testing::MemoryFile file;
  file.assign(head_of(std::string(70'000, '{')));
  const std::uint64_t length = 99'999'992;
  std::vector<std::byte> prefix;
  for (std::size_t i = 0; i < 8; ++i) prefix.push_back(static_cast<std::byte>(length >> (8 * i)));
  file.write(0, prefix);
  file.resize(100'000'000);
  EXPECT_SHARD_ERROR(ShardReader::open(file.path()), ErrorCode::corrupt, "a shard's has at most 1048576");
}

}  // namespace
}  // namespace shard
