#include <gtest/gtest.h>

#include <string>

#include "harness/machine.hpp"

namespace shard::bench {
namespace {

TEST(Machine, SaysWhatTheSystemSays) {
  const auto m = machine();
  EXPECT_GE(m["cores"], 1U);
  EXPECT_FALSE(m["cpu"].get<std::string>().empty());
  EXPECT_TRUE(m["kernel"].get<std::string>().starts_with("Linux")) << m;
  EXPECT_GT(m["memory_bytes"], 1U << 20U);
  EXPECT_NE(m["decoders"].get<std::string>().find("libjpeg"), std::string::npos) << m;
}

}  // namespace
}  // namespace shard::bench
