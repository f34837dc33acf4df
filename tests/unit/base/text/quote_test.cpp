// How messages show paths, keys and text from files.
#include "base/text/quote.hpp"

#include <gtest/gtest.h>

namespace shard {
namespace {

TEST(Quote, ShowsPathsAndTextInDoubleQuotes) {
  EXPECT_EQ(quoted(std::filesystem::path("a b/c.jpg")), "\"a b/c.jpg\"");
  EXPECT_EQ(quoted("box"), "\"box\"");
  EXPECT_EQ(quoted(std::string()), "\"\"");
}

TEST(Quote, LetsNoNameBreakTheLineOrTheQuotation) {
  EXPECT_EQ(quoted(std::filesystem::path("a\nb\x1b[2J\xff")), "\"a\\x0ab\\x1b[2J\\xff\"");
  EXPECT_EQ(quoted("we\"ird\\"), "\"we\\x22ird\\x5c\"");
}

TEST(Quote, EscapesAKeyOnce) {
  EXPECT_EQ(quoted_key("a/\\xff.jpg"), "\"a/\\xff.jpg\"");
  EXPECT_EQ(quoted_key("we\"ird"), "\"we\\x22ird\"");
}

TEST(Quote, CutsAnExcerptAndSaysSo) {
  EXPECT_EQ(quoted_excerpt(std::string(100, 'x')), '"' + std::string(100, 'x') + '"');
  EXPECT_EQ(quoted_excerpt(std::string(101, 'x')), '"' + std::string(100, 'x') + "...\"");
}

}  // namespace
}  // namespace shard
