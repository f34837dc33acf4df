// XML, also where it is hostile.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/text/xml.hpp"
#include "support/expect_error.hpp"

namespace shard {
namespace {

using Seen = std::vector<std::pair<std::string, std::string>>;

Seen texts_of(std::string_view xml, std::size_t max_text_bytes = 100) {
  Seen seen;
  read_xml(xml, {[&](std::string_view path, std::string_view text) { seen.emplace_back(path, text); },
                 {},
                 max_text_bytes});
  return seen;
}

TEST(Xml, IsReadAsPathsAndTexts) {
  EXPECT_EQ(texts_of("<?xml version='1.0'?><a x='1'>no<b> 1 </b><b/><c><d>&lt;<![CDATA[&]]></d></c>2</a>"),
            (Seen{{"/a/b", " 1 "}, {"/a/b", ""}, {"/a/c/d", "<&"}, {"/a/c", ""}, {"/a", "2"}}));
}

TEST(Xml, ElementsBeginBeforeWhatIsInThem) {
  std::vector<std::string> seen;
  read_xml("<a><b/></a>",
           {[&](std::string_view path, std::string_view) { seen.push_back("-" + std::string(path)); },
            [&](std::string_view path) { seen.emplace_back(path); }});
  EXPECT_EQ(seen, (std::vector<std::string>{"/a", "/a/b", "-/a/b", "-/a"}));
}

TEST(Xml, ThatIsNoneIsAnErrorWithItsLine) {
  for (const char* xml : {"", "text", "<a>", "<a></b>", "<a/><a/>", "<a>&what;</a>", "<a>&</a>",
                          "<a>&#0;</a>", "<a>&#x110000;</a>", "<a>\x1b</a>", "<a>\xff</a>"})
    EXPECT_SHARD_ERROR(texts_of(xml), ErrorCode::corrupt, "line 1: no XML");
  EXPECT_SHARD_ERROR(texts_of("<a>\n\n</b>"), ErrorCode::corrupt, "line 3: no XML: mismatched tag");
}

TEST(Xml, OfAnyDepthAndSizeTakesBoundedMemory) {
  const auto nested = [](int depth) {
    std::string xml;
    for (int i = 0; i < depth; ++i) xml += "<a>";
    for (int i = 0; i < depth; ++i) xml += "</a>";
    return xml;
  };
  EXPECT_EQ(texts_of(nested(32)).size(), 32U);
  EXPECT_SHARD_ERROR(texts_of(nested(33)), ErrorCode::corrupt, "more than 32 elements inside each other");
  EXPECT_SHARD_ERROR(texts_of(nested(1'000'000)), ErrorCode::corrupt, "more than 32 elements");
  EXPECT_EQ(texts_of("<a>" + std::string(100, 'x') + "</a>").size(), 1U);
  EXPECT_SHARD_ERROR(texts_of("<a>" + std::string(101, 'x') + "</a>"), ErrorCode::corrupt,
                     "more than 100 bytes of text in \"/a\"");
}

TEST(Xml, WithADoctypeIsRefusedBeforeItsEntitiesAreUsed) {
  std::string bomb = "<!DOCTYPE a [<!ENTITY a0 \"" + std::string(1000, 'x') + "\">";
  for (int i = 1; i < 12; ++i) {
    const std::string before = "&a" + std::to_string(i - 1) + ";";
    bomb += "<!ENTITY a" + std::to_string(i) + " \"";
    for (int k = 0; k < 50; ++k) bomb += before;
    bomb += "\">";
  }
  for (const std::string& xml :
       {bomb + "]><a>&a11;</a>", std::string("<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><a/>")})
    EXPECT_SHARD_ERROR(texts_of(xml), ErrorCode::corrupt, "it has a DOCTYPE");
}

TEST(Xml, WhatAnEventThrowsPassesThrough) {
  int calls = 0;
  const auto refuse = [&](std::string_view, std::string_view) {
    ++calls;
    throw Error(ErrorCode::cancelled, "enough");
  };
  EXPECT_SHARD_ERROR(read_xml("<a><b/><c/></a>", {refuse}), ErrorCode::cancelled, "enough");
  EXPECT_EQ(calls, 1);
}

TEST(Xml, AnElementsTextIsTakenFromWhatIsCutOff) {
  EXPECT_EQ(xml_text("<E><Code>Slow</Code><Code>No</Code><Region>eu-1</Regi", "Code"), "Slow");
  EXPECT_EQ(xml_text("<E><Code>Slow</Code><Region>eu-1</Regi", "Region"), "");
  for (const char* xml : {"", "<html", "<Codes>x</Codes>", "</Code><Code>x</Code>", "<Code>&what;</Code>"})
    EXPECT_EQ(xml_text(xml, "Code"), "") << xml;
}

TEST(Xml, TextIsEscaped) {
  EXPECT_EQ(texts_of("<a>" + xml_escaped("<&amp;>]]>") + "</a>"), (Seen{{"/a", "<&amp;>]]>"}}));
}

}  // namespace
}  // namespace shard
