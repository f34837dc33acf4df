#include "shard/image/file_kind.hpp"

#include <gtest/gtest.h>

#include <random>

#include "support/image/golden_images.hpp"

namespace shard::testing {
namespace {

using namespace std::string_view_literals;
using Class = image::FileKind::Class;

std::span<const std::byte> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// What a build may lack: an image in any case.
constexpr Class kOptional = Class{99};

struct Case {
  std::string_view bytes;
  Class group;
  std::string_view name;
};

constexpr Case kCases[] = {
    {"\0\0\0\x18"
     "ftypheic\0\0\0\0mif1heic"sv,
     kOptional, "a HEIC image"},
    {"\0\0\0\x18"
     "ftypmif1\0\0\0\0mif1heic"sv,
     kOptional, "a HEIC image"},
    {"\0\0\0\x1C"
     "ftypmif1\0\0\0\0mif1avifmiaf"sv,
     kOptional, "an AVIF image"},
    {"\0\0\0\x14"
     "ftypmif1\0\0\0\0mif1"sv,
     kOptional, "a HEIF image"},
    {"\0\0\0\x14"
     "ftypisom\0\0\2\0isom"sv,
     Class::other, "an MP4 or QuickTime video"},
    {"\0\0\0\x18"
     "ftypcrx \0\0\0\1crx isom"sv,
     Class::image, "a Canon raw image"},
    {"GIF89a\1\0\1\0"sv, Class::decodable, "a GIF image"},
    {"BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\2\0\0\0"sv, kOptional, "a BMP image"},
    {"BMW and other cars, a list"sv, Class::other, "a text file"},
    {"II*\0\x08\0\0\0"sv, Class::decodable, "a TIFF image"},
    {"MM\0*\0\0\0\x08"sv, Class::decodable, "a TIFF image"},
    {"II*\0\x10\0\0\0CR\2\0"sv, Class::image, "a Canon raw image"},
    {"\xFF\x0A\xFA\x1F"sv, kOptional, "a JPEG XL image"},
    {"\0\0\0\x0CJXL \r\n\x87\n\0\0\0\x14"sv, kOptional, "a JPEG XL image"},
    {"8BPS\0\1\0\0"sv, Class::image, "a Photoshop image"},
    {"P6\n3 2\n255\n"sv, kOptional, "a Netpbm image"},
    {"<?xml version=\"1.0\"?>\n<!-- drawn -->\n<svg width=\"3\"/>"sv, Class::image, "an SVG drawing"},
    {"  <svg xmlns=\"http://www.w3.org/2000/svg\"/>"sv, Class::image, "an SVG drawing"},
    {"<!DOCTYPE html><html><body>404</body></html>"sv, Class::other, "an HTML page"},
    {"<?xml version=\"1.0\"?><annotation/>"sv, Class::other, "an XML file"},
    {"%PDF-1.7\n"sv, Class::other, "a PDF document"},
    {"PK\3\4\x14\0"sv, Class::other, "a ZIP archive"},
    {"path,label\na.jpg,1\n"sv, Class::other, "a text file"},
    {"Gr\xC3\xBC\xC3\x9F"
     "e\n"sv,
     Class::other, "a text file"},
    {"version https://git-lfs.github.com/spec/v1\noid sha256:"sv, Class::other,
     "a Git LFS pointer instead of the file (run 'git lfs pull')"},
    {"\0\0\0\1Bud1\0\0"sv, Class::other, "a folder's settings (.DS_Store)"},
    {"RIFF\x10\0\0\0WAVEfmt "sv, Class::other, "a WAV file"},
    {"\xD8\xFF\xE0\0 damaged"sv, Class::unknown, "an unknown kind of file"},
    {"\0\0\0\0\0\0\0\0"sv, Class::unknown, "an unknown kind of file"},
    {""sv, Class::unknown, "an unknown kind of file"},
    {"\xFF\xD8\xFF\xE0"sv, Class::decodable, "a JPEG image"},
    {"\x89PNG\r\n\x1A\n"sv, Class::decodable, "a PNG image"},
    {"RIFF\0\0\0\0WEBPVP8 "sv, Class::decodable, "a WebP image"},
};

TEST(FileKind, IsToldByContent) {
  for (const Case& c : kCases) {
    const image::FileKind kind = image::recognize_file(bytes_of(c.bytes));
    EXPECT_EQ(kind.name, c.name);
    if (c.group == kOptional)
      EXPECT_TRUE(kind.group == Class::image || kind.group == Class::decodable) << c.name;
    else
      EXPECT_EQ(kind.group, c.group) << c.name;
  }
}

TEST(FileKind, RefusalsNameItAndSayWhatToDo) {
  EXPECT_EQ(image::why_not_decodable(bytes_of("8BPS\0\1\0\0"sv)),
            "is a Photoshop image; convert it to PNG or JPEG first");
  EXPECT_EQ(image::why_not_decodable(bytes_of("%PDF-1.7")), "is a PDF document, not an image");
  EXPECT_EQ(image::why_not_decodable(bytes_of("\1\2\3"sv)),
            "not one of " + image::decodable_formats() + ": the file starts with 01 02 03");
  EXPECT_EQ(image::why_not_decodable({}), "the file is empty");
}

// Every prefix of every case, and bytes at random: no byte outside is read (the sanitizers look), and every
// golden image is decodable by its first bytes alone.
TEST(FileKind, TakesAnyBytes) {
  for (const Case& c : kCases)
    for (std::size_t size = 0; size <= c.bytes.size(); ++size) {
      const std::vector<char> exact(c.bytes.begin(), c.bytes.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_FALSE(image::recognize_file(bytes_of({exact.data(), exact.size()})).name.empty());
    }
  std::mt19937 random(5);
  for (int i = 0; i < 2000; ++i) {
    std::vector<char> bytes(random() % 300);
    for (char& byte : bytes) byte = static_cast<char>(random());
    EXPECT_FALSE(image::recognize_file(bytes_of({bytes.data(), bytes.size()})).name.empty());
  }
  for (const auto& path : golden_files("images")) {
    Bytes file = read_file(path);
    file.resize(12);
    EXPECT_EQ(image::recognize_file(file).group, Class::decodable) << path;
  }
}

}  // namespace
}  // namespace shard::testing
