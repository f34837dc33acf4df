// Keys are lossless and have one spelling.
#include "shard/keys.hpp"

#include <gtest/gtest.h>

#include <random>

#include "support/expect_error.hpp"

namespace shard {
namespace {

TEST(Keys, PlainTextStaysAsItIs) {
  for (std::string text :
       {"", "a/b c.jpg", "\"quoted\", comma", "caf\xc3\xa9", "\xf0\x9f\x90\x88.png", "cafe\xcc\x81"}) {
    EXPECT_EQ(escape_key(text), text);
    EXPECT_EQ(unescape_key(text), text);
  }
}

TEST(Keys, ControlCharactersBackslashesAndInvalidUtf8AreEscaped) {
  EXPECT_EQ(escape_key("a\nb"), "a\\x0ab");
  EXPECT_EQ(escape_key("a\\b"), "a\\x5cb");
  EXPECT_EQ(escape_key(std::string("\0\x7f", 2)), "\\x00\\x7f");
  EXPECT_EQ(escape_key("\xff"), "\\xff");
  EXPECT_EQ(escape_key("\xc3"), "\\xc3");
  EXPECT_EQ(escape_key("\xc0\xaf"), "\\xc0\\xaf");                    // overlong '/'
  EXPECT_EQ(escape_key("\xe0\x80\xaf"), "\\xe0\\x80\\xaf");           // overlong '/'
  EXPECT_EQ(escape_key("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // surrogate
  EXPECT_EQ(escape_key("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // above U+10FFFF
  EXPECT_EQ(escape_key("\xe2\x82 x"), "\\xe2\\x82 x");                // cut short
}

TEST(Keys, NamesThatDifferInNormalisationStayTwo) {
  EXPECT_NE(escape_key("\xc3\xa9"), escape_key("e\xcc\x81"));
}

TEST(Keys, AnyBytesComeBack) {
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::string raw(random() % 12, '\0');
    constexpr char kTricky[] = "\xc3\xa9\xed\xa0\xe0\x80\xf0\x9f\x90\x88\xf4\\x0a\n\x7f";
    for (char& c : raw)
      c = random() % 2 == 0 ? static_cast<char>(random()) : kTricky[random() % (sizeof kTricky - 1)];
    const std::string key = escape_key(raw);
    ASSERT_EQ(unescape_key(key), raw);
    ASSERT_EQ(key.find_first_of("\n\r\t"), std::string::npos);
  }
}

TEST(Keys, OnlyTheOneSpellingIsAccepted) {
  const auto refused = [](const std::string& key, const char* why) {
    EXPECT_SHARD_ERROR(unescape_key(key), ErrorCode::invalid_argument, why);
  };
  refused("\\", "a backslash");
  refused("\\x", "a backslash");
  refused("\\x0", "a backslash");
  refused("\\n", "a backslash");
  refused("\\x0A", "lower-case");
  refused("\\x61", "not needed");
  refused("\\xc3\\xa9", "not needed");
  refused("\n", "a control character");
  refused("\xff", "invalid UTF-8");
}

TEST(Keys, CsvFieldsAreQuotedOnlyWhereNeeded) {
  EXPECT_EQ(csv_field("plain"), "plain");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("a\"b"), "\"a\"\"b\"");
  EXPECT_EQ(csv_field("a\nb"), "\"a\nb\"");
}

}  // namespace
}  // namespace shard
