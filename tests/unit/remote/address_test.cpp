#include "remote/http/address.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "expect_error.hpp"
#include "remote/s3/object_stores.hpp"
#include "remote/s3/remote_folder.hpp"

namespace shard {
namespace {

// Sets a variable for one test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

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

TEST(Address, AFileIsFoundInItsFolder) {
  EXPECT_EQ(split_remote("https://h/a/b%20c").folder, "https://h/a");
  EXPECT_EQ(split_remote("https://h/a/b%20c").name, "b c");
  EXPECT_EQ(split_remote("s3://bucket/a/b%20c").name, "b%20c");
  EXPECT_SHARD_ERROR(static_cast<void>(split_remote("https://h")), ErrorCode::invalid_argument,
                     "names no file");
}

TEST(Address, NamesOfFilesSurviveTheirAddress) {
  for (const char* folder : {"https://h/a", "s3://bucket/a"}) {
    const Variable anonymous("SHARD_S3_ANONYMOUS", "1");
    const auto opened = RemoteFolder::open(folder);
    for (const char* name : {"shard-00000.safetensors", "a b%20c?d#e.safetensors", "%2e%2e", "..."}) {
      EXPECT_EQ(split_remote(opened->address_of(name)).name, name);
      EXPECT_EQ(split_remote(opened->address_of(name)).folder, folder);
    }
  }
}

TEST(Address, BucketsAreInTheHostAtAmazonAndInThePathElsewhere) {
  const Variable key("AWS_ACCESS_KEY_ID", "K"), secret("AWS_SECRET_ACCESS_KEY", "S"),
      region("AWS_REGION", "eu-west-3");
  EXPECT_EQ(resolve_s3("s3://bucket/a b/c/").url, "https://bucket.s3.eu-west-3.amazonaws.com/a%20b/c");
  EXPECT_EQ(resolve_s3("s3://with.dots/a").url, "https://s3.eu-west-3.amazonaws.com/with.dots/a");
  EXPECT_EQ(resolve_s3("s3://bucket/a").access.sigv4, "aws:amz:eu-west-3:s3");
  const Variable endpoint("AWS_ENDPOINT_URL", "http://minio:9000/");
  EXPECT_EQ(resolve_s3("s3://bucket").url, "http://minio:9000/bucket");
  const Variable style("SHARD_S3_STYLE", "virtual");
  EXPECT_EQ(resolve_s3("s3://bucket/a").url, "http://bucket.minio:9000/a");
}

TEST(Address, BucketsAndRegionsCannotNameAnotherHost) {
  const Variable key("AWS_ACCESS_KEY_ID", "K"), secret("AWS_SECRET_ACCESS_KEY", "S");
  for (const char* address : {"s3://", "s3:///a", "s3://a@b/c", "s3://evil?x/c", "s3://a:80/c"})
    EXPECT_SHARD_ERROR(static_cast<void>(resolve_s3(address)), ErrorCode::invalid_argument,
                       "expected s3://BUCKET/PREFIX");
  const Variable region("AWS_REGION", "x.evil.com/");
  EXPECT_SHARD_ERROR(static_cast<void>(resolve_s3("s3://b/c")), ErrorCode::invalid_argument,
                     "is not a region");
}

}  // namespace
}  // namespace shard
