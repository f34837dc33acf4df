// The JSON reader against an independent one, on documents and on their mutations.
#include "base/text/json.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "support/expect_error.hpp"

namespace shard {
namespace {

// Rebuilds the document with the reference's types.
class Builder final : public JsonHandler {
 public:
  nlohmann::ordered_json root;

  void null() override { add(nullptr); }
  void boolean(bool value) override { add(value); }
  void unsigned_integer(std::uint64_t value) override { add(value); }
  void other_number(std::string_view text) override { add(nlohmann::ordered_json::parse(text)); }
  void string(std::string&& value) override { add(std::move(value)); }
  void begin_object() override { open(nlohmann::ordered_json::object()); }
  void key(std::string&& name) override { key_ = std::move(name); }
  void end_object() override { path_.pop_back(); }
  void begin_array() override { open(nlohmann::ordered_json::array()); }
  void end_array() override { path_.pop_back(); }

 private:
  nlohmann::ordered_json& add(nlohmann::ordered_json value) {
    if (path_.empty()) return root = std::move(value);
    nlohmann::ordered_json& parent = *path_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return parent.back();
    }
    return parent[key_] = std::move(value);
  }
  void open(nlohmann::ordered_json value) { path_.push_back(&add(std::move(value))); }

  std::vector<nlohmann::ordered_json*> path_;
  std::string key_;
};

// Whether both readers refuse `text`, or accept it as the same document.
void expect_same(const std::string& text) {
  // The reference takes a NUL for the end and skips a byte order mark.
  const bool quirk = text.find('\0') != std::string::npos || text.starts_with("\xef\xbb\xbf");
  const auto expected = nlohmann::ordered_json::parse(text, nullptr, false);
  Builder builder;
  bool accepted = true;
  try {
    parse_json(text, builder, "text");
  } catch (const Error& error) {
    accepted = false;
    ASSERT_EQ(error.code(), ErrorCode::corrupt);
  } catch (const nlohmann::json::exception&) {
    return;  // the reference cannot hold the number (1e999)
  }
  if (quirk) {
    ASSERT_FALSE(accepted) << text;
    return;
  }
  ASSERT_EQ(accepted, !expected.is_discarded()) << text;
  if (!accepted) return;
  ASSERT_EQ(builder.root.dump(), expected.dump()) << text;
}

const char* const kDocuments[] = {
    R"({"a":[1,-2,3.5,1e5,-0,0.1E-7,18446744073709551615,18446744073709551616],"b":{"c":null,"d":true,"e":false},"":""})",
    R"( [ "\"\\\/\b\f\n\r\t\u0041\u00e9\u20ac\ud83d\ude00" , [ ] , { } , [ [ [ ] ] ] ] )",
    "{\"caf\xc3\xa9\":\"\xe2\x82\xac \xf0\x9f\x98\x80\",\"long\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}",
    "0",
    "-0.0",
    "\"\"",
    "true",
    "nul",
    "[1,]",
    "{\"a\"}",
    "{\"a\":1,}",
    "[1 2]",
    "01",
    "-",
    "1.",
    ".5",
    "1e",
    "+1",
    "\"\\x\"",
    "\"\\u12\"",
    "\"\\ud800\"",
    "\"\\ud800\\u0041\"",
    "\"\\udc00\"",
    "\"\x01\"",
    "\"\x7f\"",
    "\xef\xbb\xbf{}",
    "",
    " ",
    "[",
    "]",
    "{]",
    "[}",
    "{}{}",
    "nullx"};

TEST(Json, AgreesWithTheReferenceOnDocuments) {
  for (const char* document : kDocuments) expect_same(document);
}

TEST(Json, AgreesWithTheReferenceOnMutations) {
  std::mt19937 random(7);
  constexpr char kBytes[] = "{}[]\",:\\u0123456789eE+-. \n\taDd8\x01\x7f\x80\xc3\xe2\xed\xf0\xff";
  for (int round = 0; round < 60'000; ++round) {
    std::string text = kDocuments[random() % std::size(kDocuments)];
    for (std::size_t edits = 1 + random() % 3; edits > 0; --edits) {
      const std::size_t at = random() % (text.size() + 1);
      const char c = kBytes[random() % sizeof kBytes];  // the NUL at its end, too
      if (random() % 3 == 0) {
        text.insert(at, 1, c);
      } else if (at < text.size()) {
        random() % 2 == 0 ? void(text[at] = c) : void(text.erase(at, 1 + random() % 4));
      }
    }
    ASSERT_NO_FATAL_FAILURE(expect_same(text));
  }
}

TEST(Json, ErrorsNameTheByte) {
  Builder builder;
  EXPECT_SHARD_ERROR(parse_json("[1,x]", builder, "the file"), ErrorCode::corrupt,
                     "the file is not valid JSON: a value expected at byte 3");
}

TEST(Json, QuotedTextReadsBackEqual) {
  std::string all;
  for (int c = 0; c < 0x80; ++c) all += static_cast<char>(c);
  for (const std::string& text : {std::string(), all, std::string("\xc3\xa9\xf0\x9f\x90\x88")}) {
    EXPECT_EQ(nlohmann::json::parse(json_quote(text)).get<std::string>(), text);
    Builder builder;
    parse_json(json_quote(text), builder, "text");
    EXPECT_EQ(builder.root.get<std::string>(), text);
  }
  EXPECT_SHARD_ERROR(json_quote("\xff"), ErrorCode::invalid_argument, "not valid UTF-8");
}

}  // namespace
}  // namespace shard
