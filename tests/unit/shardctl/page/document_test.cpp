// Nothing of the data set becomes markup of the page.
#include "shardctl/page/document.hpp"

#include <gtest/gtest.h>

#include <string>

namespace shard::ctl {
namespace {

std::size_t times_in(const std::string& text, const std::string& piece) {
  std::size_t times = 0;
  for (std::size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) ++times;
  return times;
}

TEST(PageDocument, HasTheDataBetweenItsOwnTagsOnly) {
  const std::string plain = html_document("x", {{"name", "x"}});
  const std::string hostile = html_document(
      "</title><b>", {{"name", "</script><script>alert(1)</script><!--"}, {"@script@", "@style@"}});
  for (const char* tag : {"<script", "</script", "</title", "<style", "<b>", "<!--"})
    EXPECT_EQ(times_in(hostile, tag), times_in(plain, tag)) << tag;
  EXPECT_EQ(times_in(hostile, "&lt;/title&gt;&lt;b&gt;"), 1U);
}

TEST(PageDocument, TheDataIsTheJsonThatWentIn) {
  const Json data = {{"key", "<&>\"'\\\n\xE2\x80\xA8 \xD7\xA9"}, {"@data@", 1}};
  const std::string html = html_document("x", data);
  const std::string open = "<script id=\"data\" type=\"application/json\">";
  const std::size_t begin = html.find(open) + open.size();
  EXPECT_EQ(Json::parse(html.substr(begin, html.find("</script>", begin) - begin)), data);
}

TEST(PageDocument, NoMarkOfTheTemplateIsLeft) {
  const std::string html = html_document("x", Json::object());
  for (const char* mark : {"@title@", "@style@", "@data@", "@script@"})
    EXPECT_EQ(times_in(html, mark), 0U) << mark;
  EXPECT_TRUE(html.starts_with("<!doctype html>\n<!-- shardctl page -->\n"));
  EXPECT_TRUE(html.ends_with("</html>\n"));
}

}  // namespace
}  // namespace shard::ctl
