// What is an image, by its name and by its first bytes.
#include <gtest/gtest.h>

#include "shard/convert/input_name.hpp"

namespace shard::convert {
namespace {

TEST(InputName, KnowsImagesByContentAlsoThoseThatAreNotDecoded) {
  const auto is_image = [](std::string_view text) {
    return has_image_content(std::as_bytes(std::span(text.data(), text.size())));
  };
  using namespace std::literals;
  for (const std::string_view text :
       {"\xFF\xD8\xFF\xE0"sv, "\x89PNG\r\n\x1a\n"sv, "RIFF\0\0\0\0WEBP"sv, "GIF89a"sv, "II*\0"sv, "MM\0*"sv,
        "BM\x5A\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0"sv,
        "\0\0\0\x18"
        "ftypheic"sv,
        "\0\0\0\x1c"
        "ftypavif"sv})
    EXPECT_TRUE(is_image(text)) << text;
  for (const std::string_view text :
       {""sv, "BM"sv, "BMW,1,2,3\n"sv, "path,label\n"sv, "PK\3\4"sv, "%PDF-1.4"sv, "RIFF\0\0\0\0WAVE"sv,
        "\0\0\0\x18"
        "ftypmp42"sv})
    EXPECT_FALSE(is_image(text)) << text;
  for (const char* name : {"a.jpg", "a.JPEG", "a.b.Png", "x.webp", "x.HEIC", "x.tif"})
    EXPECT_TRUE(has_image_name(name));
  for (const char* name : {"jpg", "a.jpg.txt", "a.", "", "a.jpg~", "a.jpegs"})
    EXPECT_FALSE(has_image_name(name));
}

TEST(InputName, KnowsWhatSystemsLeaveBehindInAnyCase) {
  for (const char* name : {"__MACOSX", "Thumbs.db", "THUMBS.DB", "$RECYCLE.BIN", "Icon\r",
                           "System Volume Information", "@eaDir"})
    EXPECT_EQ(skip_by_name(name), SkipReason::litter) << name;
  EXPECT_EQ(skip_by_name(".git"), SkipReason::hidden);
  for (const char* name : {"", "thumbs.dbx", "thumbs.d", "_macosx", "icon", "a.jpg", "lost+found2"})
    EXPECT_EQ(skip_by_name(name), std::nullopt) << name;
  EXPECT_EQ(skip_by_path("a/THUMBS.DB/b.jpg"), SkipReason::litter);
  EXPECT_EQ(skip_by_path("a/b.jpg"), std::nullopt);
}

}  // namespace
}  // namespace shard::convert
