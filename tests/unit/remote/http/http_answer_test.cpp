#include "remote/http/http_answer.hpp"

#include <gtest/gtest.h>

#include "base/text/number.hpp"

namespace shard {
namespace {

TEST(HttpAnswer, ContentRangeIsHalfOpen) {
  const auto range = parse_content_range("bytes 8-15/16");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->begin, 8U);
  EXPECT_EQ(range->end, 16U);
  EXPECT_EQ(range->total, 16U);
}

TEST(HttpAnswer, ContentRangesThatContradictThemselvesAreNothing) {
  for (const char* text :
       {"", "bytes", "bytes ", "bytes 1-0/16", "bytes 0-16/16", "bytes 0-15/*", "bytes */16", "bytes -1-3/16",
        "bytes 0-15/16 ", "items 0-15/16", "bytes 0-15", "bytes 0/15-16", "bytes 0-18446744073709551616/2",
        "bytes 0-18446744073709551615/18446744073709551615"})
    EXPECT_FALSE(parse_content_range(text)) << text;
}

TEST(HttpAnswer, NumbersAreDigits) {
  EXPECT_EQ(number_of<std::uint64_t>("18446744073709551615"), ~std::uint64_t{0});
  for (const char* text : {"", "+1", "-1", " 1", "1 ", "0x1", "18446744073709551616"})
    EXPECT_FALSE(number_of<std::uint64_t>(text)) << text;
}

TEST(HttpAnswer, HeadersAreComparedWithoutCase) {
  EXPECT_TRUE(equals_ignoring_case("ETag", "etag"));
  EXPECT_FALSE(equals_ignoring_case("ETag", "etags"));
  EXPECT_FALSE(equals_ignoring_case("[tag", "{tag"));
}

TEST(HttpAnswer, CodesOfErrorsAreLettersAndDigits) {
  EXPECT_EQ(error_code_of("<Error><Code>SlowDown</Code></Error>"), "SlowDown");
  EXPECT_EQ(error_code_of("<Code>a\x1b[31m</Code>"), "");
  EXPECT_EQ(error_code_of("</Code><Code>x"), "");
  EXPECT_EQ(error_code_of("<Code>" + std::string(100, 'a') + "</Code>"), "");
}

TEST(HttpAnswer, BusyServersAreAskedAgain) {
  for (const long status : {408L, 429L, 500L, 502L, 503L, 504L})
    EXPECT_TRUE(may_succeed_later(status)) << status;
  for (const long status : {200L, 301L, 400L, 403L, 404L, 409L, 412L, 501L, 505L})
    EXPECT_FALSE(may_succeed_later(status)) << status;
}

}  // namespace
}  // namespace shard
