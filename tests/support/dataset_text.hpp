// dataset.json as text, for tests that change it.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/digest/checksum.hpp"

namespace shard::testing {

// `text` with `from` replaced by `to`, and a digest that is right again.
inline std::string edited(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  const std::string last = "  \"digest\": \"xxh3:";
  text.resize(text.rfind(last));
  return text + last + to_hex(xxh3(text)) + "\"\n}\n";
}

}  // namespace shard::testing
