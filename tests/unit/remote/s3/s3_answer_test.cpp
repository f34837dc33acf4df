// The XML of S3, also where it is hostile.
#include <gtest/gtest.h>

#include <string>

#include "remote/s3/s3_answer.hpp"
#include "support/expect_error.hpp"

namespace shard {
namespace {

TEST(S3Answer, PartsAreRead) {
  const S3PartList list = parse_parts(
      "<?xml version=\"1.0\"?><R "
      "xmlns=\"x\"><PartNumberMarker>0</PartNumberMarker><IsTruncated>true</"
      "IsTruncated><NextPartNumberMarker>7"
      "</NextPartNumberMarker><Part><PartNumber>7</PartNumber><ETag>&quot;ab&#34;</ETag><Size>12</Size></"
      "Part></R>");
  ASSERT_EQ(list.parts.size(), 1U);
  EXPECT_EQ(list.parts[0].number, 7U);
  EXPECT_EQ(list.parts[0].etag, "\"ab\"");
  EXPECT_EQ(list.parts[0].size_bytes, 12U);
  EXPECT_EQ(list.next, "7");
}

TEST(S3Answer, PartsThatCannotBeAreLeftOut) {
  for (const char* part :
       {"<PartNumber>0</PartNumber><Size>1</Size>", "<PartNumber>10001</PartNumber><Size>1</Size>",
        "<PartNumber>-1</PartNumber><Size>1</Size>", "<PartNumber>1</PartNumber>",
        "<PartNumber>1</PartNumber><Size>99999999999999999999999</Size>", ""})
    EXPECT_TRUE(parse_parts("<R><Part>" + std::string(part) + "</Part></R>").parts.empty()) << part;
  const S3PartList list = parse_parts(
      "<R><Size>1</Size><Part><PartNumber>1</PartNumber></Part><Part><Size>2</Size></Part>"
      "<Part><PartNumber>3</PartNumber><Size>4</Size></Part></R>");
  ASSERT_EQ(list.parts.size(), 1U);  // nothing of the others is in it
  EXPECT_EQ(list.parts[0].number, 3U);
  EXPECT_EQ(list.parts[0].etag, "");
}

// It may be a part of a list, whose keys would be taken for all.
TEST(S3Answer, ListsThatAreNoXmlAreErrors) {
  for (const char* xml : {"", "<Part>", "<Part", "</Part><Part", "<<<>>>", "&", "<Part attribute", "<R/><R/>",
                          "<R><Contents><Key>a</Key></Contents>", "<R><Key>a</R>"}) {
    EXPECT_SHARD_ERROR(static_cast<void>(parse_parts(xml)), ErrorCode::corrupt, "line 1: no XML");
    EXPECT_SHARD_ERROR(static_cast<void>(parse_uploads(xml)), ErrorCode::corrupt, "line 1: no XML");
    EXPECT_SHARD_ERROR(static_cast<void>(parse_keys(xml)), ErrorCode::corrupt, "line 1: no XML");
  }
}

TEST(S3Answer, UploadsHaveTheirKeys) {
  const S3UploadList list = parse_uploads(
      "<R><Upload><Key>a&amp;b &#xFC;</Key><UploadId>1</UploadId></Upload><Upload><Key>c</Key></Upload></R>");
  ASSERT_EQ(list.uploads.size(), 1U);
  EXPECT_EQ(list.uploads[0].key, "a&b \xc3\xbc");
  EXPECT_TRUE(list.next_key.empty());
}

TEST(S3Answer, KeysAreThoseOfTheirObjects) {
  const S3KeyList list = parse_keys(
      "<R><Prefix>p</Prefix><IsTruncated>true</IsTruncated><NextContinuationToken>t&amp;</"
      "NextContinuationToken>"
      "<Contents><Key>&#x20AC;&#x1F600;&amp;amp; </Key><Owner><Key>no</Key></Owner></Contents>"
      "<CommonPrefixes><Prefix>p/q</Prefix></CommonPrefixes><Key>no</Key></R>");
  EXPECT_EQ(list.keys, (std::vector<std::string>{"\xe2\x82\xac\xf0\x9f\x98\x80&amp; "}));
  EXPECT_TRUE(list.truncated);
  EXPECT_EQ(list.next, "t&");
}

TEST(S3Answer, EtagsThatAreDigests) {
  EXPECT_EQ(plain_etag("\"900150983cd24fb0d6963f7d28e17f72\""), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(plain_etag("900150983cd24fb0d6963f7d28e17f72-12"), "900150983cd24fb0d6963f7d28e17f72-12");
  for (const char* other :
       {"", "\"\"", "\"abc\"", "W/\"900150983cd24fb0d6963f7d28e17f72\"", "900150983cd24fb0d6963f7d28e17f72-",
        "900150983cd24fb0d6963f7d28e17f72-x", "900150983cd24fb0d6963f7d28e17g72"})
    EXPECT_EQ(plain_etag(other), "") << other;
}

}  // namespace
}  // namespace shard
