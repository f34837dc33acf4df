// Addresses: what is one, and what it may contain.
#include <gtest/gtest.h>

#include "remote/http/address.hpp"
#include "support/expect_error.hpp"

namespace shard {
namespace {

TEST(Address, SchemesInLowerCaseAreRemote) {
  for (const char* path : {"https://h/x", "http://h", "s3://b/p", "hf://datasets/a/b"})
    EXPECT_TRUE(is_remote(path)) << path;
  for (const char* path : {"https:/h", "HTTPS://h", "/https://h", "ftp://h", "out", "s3:/b"})
    EXPECT_FALSE(is_remote(path)) << path;
}

TEST(Address, NamesCannotLeaveTheirPartOfThePath) {
  EXPECT_EQ(percent_encoded("a/b?c#d\r\nX: y %"), "a%2Fb%3Fc%23d%0D%0AX%3A%20y%20%25");
  EXPECT_EQ(percent_encoded("a/b c", true), "a/b%20c");
}

TEST(Address, OriginsHaveTheirPort) {
  EXPECT_EQ(origin_of("https://Host/a"), origin_of("https://host:443/b"));
  EXPECT_EQ(origin_of("http://host"), "http://host:80");
  EXPECT_NE(origin_of("http://host"), origin_of("https://host"));
  EXPECT_NE(origin_of("https://host"), origin_of("https://host.evil"));
  EXPECT_EQ(origin_of("http://[::1]/a"), "http://[::1]:80");
  EXPECT_EQ(origin_of("http://[::1]:81/a"), "http://[::1]:81");
}

TEST(Address, UrlsAreChecked) {
  EXPECT_EQ(checked_url("https://h/a//"), "https://h/a");
  for (const char* url : {"https://", "https:///a", "https://u@h/a", "https://h/a?b", "https://h/a#b",
                          "https://h/a b", "https://h/\x7f", "https://h/\xc3\xa4"})
    EXPECT_SHARD_ERROR(static_cast<void>(checked_url(url)), ErrorCode::invalid_argument, "");
}

}  // namespace
}  // namespace shard
