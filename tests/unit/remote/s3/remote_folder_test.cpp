// Addresses of files in a folder on a server.
#include <gtest/gtest.h>

#include <cstdlib>

#include "remote/s3/remote_folder.hpp"
#include "support/expect_error.hpp"

namespace shard {
namespace {

TEST(RemoteAddress, AFileIsFoundInItsFolder) {
  EXPECT_EQ(split_remote("https://h/a/b%20c").folder, "https://h/a");
  EXPECT_EQ(split_remote("https://h/a/b%20c").name, "b c");
  EXPECT_EQ(split_remote("s3://bucket/a/b%20c").name, "b%20c");
  EXPECT_SHARD_ERROR(static_cast<void>(split_remote("https://h")), ErrorCode::invalid_argument,
                     "names no file");
}

TEST(RemoteAddress, NamesOfFilesSurviveTheirAddress) {
  for (const char* folder : {"https://h/a", "s3://bucket/a"}) {
    ::setenv("SHARD_S3_ANONYMOUS", "1", 1);
    const auto opened = RemoteFolder::open(folder);
    for (const char* name : {"shard-00000.safetensors", "a b%20c?d#e.safetensors", "%2e%2e", "..."}) {
      EXPECT_EQ(split_remote(opened->address_of(name)).name, name);
      EXPECT_EQ(split_remote(opened->address_of(name)).folder, folder);
    }
  }
  ::unsetenv("SHARD_S3_ANONYMOUS");
}

}  // namespace
}  // namespace shard
