// The XML of S3, also where it is hostile.
#include <gtest/gtest.h>

#include <string>

#include "remote/http/xml_text.hpp"
#include "remote/s3/object_upload.hpp"
#include "remote/s3/s3_answer.hpp"

namespace shard {
namespace {

TEST(S3Answer, PartsAreRead) {
  const S3PartList list = parse_parts(
      "<?xml?><R "
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
    EXPECT_TRUE(parse_parts("<Part>" + std::string(part) + "</Part>").parts.empty()) << part;
  for (const char* xml : {"<Part>", "<Part", "</Part><Part", "<<<>>>", "&", "<Part attribute"})
    EXPECT_TRUE(parse_parts(xml).parts.empty()) << xml;
}

TEST(S3Answer, UploadsHaveTheirKeys) {
  const S3UploadList list = parse_uploads(
      "<Upload><Key>a&amp;b &#xFC;</Key><UploadId>1</UploadId></Upload><Upload><Key>c</Key></Upload>");
  ASSERT_EQ(list.uploads.size(), 1U);
  EXPECT_EQ(list.uploads[0].key, "a&b \xc3\xbc");
  EXPECT_TRUE(list.next_key.empty());
}

TEST(S3Answer, EntitiesThatAreNone) {
  for (const char* text :
       {"&", "&;", "&#;", "&#x;", "&#0;", "&#x110000;", "&#99999999999;", "&amp", "&what;"})
    EXPECT_EQ(xml_text("<a>" + std::string(text) + "</a>", "a"), text);
  EXPECT_EQ(xml_text("<a>&#x20AC;&#x1F600;&amp;amp;</a>", "a"), "\xe2\x82\xac\xf0\x9f\x98\x80&amp;");
}

TEST(S3Answer, EtagsThatAreDigests) {
  EXPECT_EQ(plain_etag("\"900150983cd24fb0d6963f7d28e17f72\""), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(plain_etag("900150983cd24fb0d6963f7d28e17f72-12"), "900150983cd24fb0d6963f7d28e17f72-12");
  for (const char* other :
       {"", "\"\"", "\"abc\"", "W/\"900150983cd24fb0d6963f7d28e17f72\"", "900150983cd24fb0d6963f7d28e17f72-",
        "900150983cd24fb0d6963f7d28e17f72-x", "900150983cd24fb0d6963f7d28e17g72"})
    EXPECT_EQ(plain_etag(other), "") << other;
}

TEST(ObjectUpload, PartsAreAtMostTenThousandAndAtLeastEightMebibytes) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
  for (const std::uint64_t size :
       {std::uint64_t{0}, std::uint64_t{1}, 100 * kMiB, 80'000 * kMiB, 80'000 * kMiB + 1, 5'000'000 * kMiB}) {
    const std::uint64_t part = upload_part_bytes(size);
    EXPECT_GE(part, 8 * kMiB);
    EXPECT_LE(part * 9'999, std::max(size, 8 * kMiB * 9'999) + 9'999 * kMiB);
    EXPECT_LE((size + part - 1) / part, 10'000U) << size;
  }
}

}  // namespace
}  // namespace shard
