// What a later run accepts: the recorded plan, and receipts of shards.
#include <gtest/gtest.h>

#include "convert/publish/journal.hpp"
#include "shard/error.hpp"
#include "support/convert/input_folder.hpp"
#include "support/expect_error.hpp"

namespace shard::convert {
namespace {

namespace fs = std::filesystem;

TEST(PlanRecord, NamesWhatDiffers) {
  PlanRecord there{"f1",          "s1", 10, 5, {{"filter", "bilinear"}, {"crop", "center 224x224"}},
                   Stage::staged, ""};
  EXPECT_EQ(parse_plan(serialize_plan(there)).stage, Stage::staged);
  EXPECT_NO_THROW(require_same_plan(parse_plan(serialize_plan(there)), there, "out"));
  PlanRecord asked = there;
  asked.fingerprint = "f2";
  asked.options["filter"] = "box";
  EXPECT_SHARD_ERROR(require_same_plan(there, asked, "out"), ErrorCode::invalid_argument,
                     "filter: \"bilinear\" recorded, \"box\" requested");
  asked = there;
  asked.inputs = 11;
  asked.source_digest = "s2";
  EXPECT_SHARD_ERROR(require_same_plan(there, asked, "out"), ErrorCode::invalid_argument,
                     "inputs: \"10\" recorded, \"11\" requested");
  asked = there;
  asked.source_digest = "s2";
  EXPECT_SHARD_ERROR(require_same_plan(there, asked, "out"), ErrorCode::invalid_argument,
                     "not the same as before");
  EXPECT_SHARD_ERROR(require_same_plan(there, asked, "out", [] { return std::string("\n  'a': gone"); }),
                     ErrorCode::invalid_argument, "other inputs:\n  'a': gone\nuse `refresh`");
}

TEST(PlanRecord, RefusesAFileThatIsNotOne) {
  EXPECT_SHARD_ERROR(parse_plan("{"), ErrorCode::corrupt, "conversion.json");
  EXPECT_SHARD_ERROR(parse_plan(R"({"version": 99})"), ErrorCode::unsupported, "another version");
  EXPECT_SHARD_ERROR(parse_plan(R"({"version": "2"})"), ErrorCode::corrupt, "conversion.json");
  const testing::TempDir dir;
  write(dir.path() / kPlanFile, "[1");
  EXPECT_SHARD_ERROR(read_plan(dir.path()), ErrorCode::corrupt, "use `overwrite` to replace");
}

TEST(ShardReceipt, ComesBackAsItWas) {
  Receipt receipt;
  receipt.shard = {"shard-00003.safetensors", 7, 4096, 0xfedcba9876543210U};
  receipt.rejects = {{"a/\"b\".jpg", "is empty, or \"so\""}};
  receipt.inputs = "a,1,\n\"b,\",2,0123456789abcdef\n";
  const PlanRecord plan{"f1", "s1", 10, 5, {}, {}, {}};
  const Receipt back = parse_receipt(serialize_receipt(receipt, plan, 3), plan, 3);
  EXPECT_EQ(back.shard, receipt.shard);
  EXPECT_EQ(back.rejects, receipt.rejects);
  EXPECT_TRUE(back.warnings.empty());
  EXPECT_EQ(serialize_receipt(receipt, plan, 3).find("warnings"), std::string::npos)
      << "only where there are some";
  receipt.warnings.images[1] = 12;
  receipt.warnings.images[9] = 1;
  receipt.jpeg.add(JpegUse::transcoded);
  EXPECT_EQ(parse_receipt(serialize_receipt(receipt, plan, 3), plan, 3).warnings, receipt.warnings);
  EXPECT_EQ(parse_receipt(serialize_receipt(receipt, plan, 3), plan, 3).jpeg, receipt.jpeg);
  EXPECT_EQ(back.inputs, receipt.inputs);
}

TEST(ShardReceipt, IsNoneWhenItIsDamagedOrOfAnotherConversion) {
  const testing::TempDir dir;
  const PlanRecord plan{"f1", "s1", 10, 5, {}, {}, {}};
  Receipt receipt;
  receipt.shard = {shard_name(3), 2, 5, 0xfedcba9876543210U};
  receipt.inputs = "a,1,\n";
  const std::string whole = serialize_receipt(receipt, plan, 3);
  const fs::path path = receipt_path(dir.path(), 3);
  write(dir.path() / shard_name(3), "12345");
  const auto found = [&](const std::string& text) {
    write(path, text);
    return finished_shard(dir.path(), plan, 3).has_value();
  };
  EXPECT_TRUE(found(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(found(whole.substr(0, size))) << size;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    EXPECT_FALSE(found(flipped)) << at;
  }
  for (const char* text :
       {"[]\n", "{}", "null\n", "\n\n", "\xff\xfe\n\xff", R"({"version": 2, "head_digest": "x"})"})
    EXPECT_FALSE(found(text)) << text;
  EXPECT_FALSE(found(whole + whole));
  EXPECT_TRUE(found(whole));
  fs::resize_file(path, std::uint64_t{1} << 40U);  // a hole of a terabyte: not read
  EXPECT_FALSE(finished_shard(dir.path(), plan, 3).has_value());
  EXPECT_TRUE(found(whole));
  PlanRecord other = plan;
  other.source_digest = "s2";
  EXPECT_FALSE(finished_shard(dir.path(), other, 3).has_value());
  write(dir.path() / shard_name(3), "1234");
  EXPECT_FALSE(finished_shard(dir.path(), plan, 3).has_value());
}

}  // namespace
}  // namespace shard::convert
