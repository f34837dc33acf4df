// Where a bucket is.
#include <gtest/gtest.h>

#include <cstdlib>

#include "remote/s3/object_stores.hpp"
#include "support/expect_error.hpp"

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

TEST(ObjectStores, BucketsAreInTheHostAtAmazonAndInThePathElsewhere) {
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

TEST(ObjectStores, BucketsAndRegionsCannotNameAnotherHost) {
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
