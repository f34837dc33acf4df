// Which complaints of the JPEG decoder let an image pass, and which not.
#include <gtest/gtest.h>

#include <random>

#include "support/expect_error.hpp"
#include "support/image/golden_images.hpp"
#include "support/image/image_variants.hpp"

namespace shard::testing {
namespace {

using image::OnWarning;
using image::Warning;

constexpr std::size_t kEnd = 2;  // bytes of the EOI marker

image::DecodeOptions with(OnWarning on_warning) {
  image::DecodeOptions options;
  options.on_warning = on_warning;
  return options;
}

Bytes insert(Bytes file, std::size_t at, std::string_view text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  file.insert(file.begin() + static_cast<std::ptrdiff_t>(at), first, first + text.size());
  return file;
}

Bytes original() { return read_file(golden_path("jpeg_420_33x20.jpg")); }
Pixels expected() { return expected_pixels(golden_path("jpeg_420_33x20.jpg")); }

image::WarningSet set_of(Warning warning) {
  image::WarningSet set;
  set.add(warning);
  return set;
}

void expect_harmless(const Bytes& file, Warning warning, const Pixels& pixels) {
  SCOPED_TRACE(image::to_string(warning));
  image::Decoder decoder;
  EXPECT_EQ(copy_of(decoder.decode(file, {})), pixels);
  EXPECT_EQ(decoder.warnings(), set_of(warning));
  EXPECT_EQ(copy_of(decoder.decode(file, with(OnWarning::accept))), pixels);
  EXPECT_SHARD_ERROR(decoder.decode(file, with(OnWarning::reject)), ErrorCode::corrupt, "JPEG: ");
  EXPECT_TRUE(decoder.warnings().empty());
}

void expect_damage(const Bytes& file, Warning warning) {
  SCOPED_TRACE(image::to_string(warning));
  image::Decoder decoder;
  EXPECT_SHARD_ERROR(decoder.decode(file, {}), ErrorCode::corrupt, "JPEG: ");
  EXPECT_SHARD_ERROR(decoder.decode(file, with(OnWarning::reject)), ErrorCode::corrupt, "JPEG: ");
  EXPECT_EQ(decoder.decode(file, with(OnWarning::accept)).width, expected().width);
  EXPECT_TRUE(decoder.warnings().has(warning));
}

TEST(JpegWarnings, BytesThatBelongToNothingAreHarmlessInTheHeader) {
  Segments parts = split_jpeg(original());
  for (std::size_t at = 1; at <= parts.parts.size(); ++at) {
    Segments with_bytes = parts;
    with_bytes.parts.insert(with_bytes.parts.begin() + static_cast<std::ptrdiff_t>(at),
                            Bytes(7, std::byte{0x20}));
    expect_harmless(with_bytes.join(), Warning::extraneous_bytes, expected());
  }
}

TEST(JpegWarnings, BytesBehindTheImageDataAreHarmlessWhereTheDataAreComplete) {
  const Bytes file = original();
  for (const std::string& bytes :
       {std::string(40, '\0'), std::string(300, ' '), std::string("made by a scanner, 1999")})
    expect_harmless(insert(file, file.size() - kEnd, bytes), Warning::extraneous_bytes, expected());
  const Bytes restarts = read_file(golden_path("jpeg_restart_each_block.jpg"));
  std::size_t at = restarts.size() - kEnd;
  while (byte_at(restarts, at) != 0xFF || byte_at(restarts, at + 1) != 0xD3) --at;
  expect_harmless(insert(restarts, at, std::string(40, '\0')), Warning::extraneous_bytes,
                  expected_pixels(golden_path("jpeg_restart_each_block.jpg")));
}

TEST(JpegWarnings, AJfifVersionOfTheFutureIsHarmless) {
  Bytes file = original();
  ASSERT_EQ(byte_at(file, 6), std::uint32_t{'J'});
  file[11] = std::byte{9};
  expect_harmless(file, Warning::jfif_version, expected());
}

TEST(JpegWarnings, AnUnknownColourTransformMeansTheUsualOne) {
  const Bytes adobe = read_file(golden_path("jpeg_ycc_by_adobe.jpg"));
  Segments parts = split_jpeg(adobe);
  for (Bytes& part : parts.parts)
    if (byte_at(part, 1) == 0xEE) part.back() = std::byte{7};
  expect_harmless(parts.join(), Warning::adobe_transform,
                  expected_pixels(golden_path("jpeg_ycc_by_adobe.jpg")));
}

TEST(JpegWarnings, ParametersOfProgressiveScansAreIgnoredInSequentialOnes) {
  const Bytes file = original();
  Segments parts = split_jpeg(file);
  ASSERT_EQ(byte_at(parts.rest, 1), 0xDAU);
  const std::size_t last = 2 + byte_at(parts.rest, 3) - 2;  // Ss, Se, Ah | Al end the scan's header
  ASSERT_EQ(byte_at(parts.rest, last), 63U);
  parts.rest[last] = std::byte{0};
  expect_harmless(parts.join(), Warning::scan_parameters, expected());
}

TEST(JpegWarnings, MissingOrInventedPixelsAreARejectUnlessAskedFor) {
  const Bytes file = original();
  Bytes early = file;
  early[file.size() - 60] = std::byte{0xFF};
  early[file.size() - 59] = std::byte{0xD9};
  expect_damage(early, Warning::premature_marker);
  expect_damage(slice(file, 0, file.size() - 60), Warning::premature_end);
  Bytes restarts = read_file(golden_path("jpeg_restart_each_block.jpg"));
  for (std::size_t i = 0; i + 1 < restarts.size(); ++i)
    if (byte_at(restarts, i) == 0xFF && byte_at(restarts, i + 1) == 0xD2) restarts[i + 1] = std::byte{0xD5};
  expect_damage(restarts, Warning::restart_marker);
}

// Damage in the image data mostly shows as bytes that are left over behind it, with the very warning that
// harmless bytes give. Chance lets few of them pass; what is stored then is counted.
TEST(JpegWarnings, BytesLeftOverByDamageAreNotTakenForHarmlessOnes) {
  const Bytes file = read_file(golden_path("jpeg_444_33x20.jpg"));
  const Segments parts = split_jpeg(file);
  const std::size_t begin = file.size() - parts.rest.size() + 14;
  std::mt19937 random(3);
  image::Decoder decoder;
  int left_over = 0;
  int passed = 0;
  for (int i = 0; i < 3000; ++i) {
    Bytes damaged = file;
    const std::size_t at = begin + random() % (file.size() - kEnd - begin);
    damaged[at] ^= static_cast<std::byte>(1U << (random() % 8));
    try {
      decoder.decode(damaged, with(OnWarning::accept));
    } catch (const Error&) {
      continue;
    }
    if (decoder.warnings() != set_of(Warning::extraneous_bytes)) continue;
    ++left_over;
    try {
      decoder.decode(damaged, {});
      ++passed;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt);
      EXPECT_NE(std::string(error.what()).find("after the image data"), std::string::npos) << error.what();
    }
  }
  EXPECT_GT(left_over, 100) << "the damage that this test is about";
  EXPECT_LT(passed * 10, left_over) << passed << " of " << left_over;
}

TEST(JpegWarnings, EachHasANameOfItsOwn) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < image::kWarnings; ++i)
    names.push_back(image::to_string(static_cast<Warning>(i)));
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  EXPECT_EQ(image::on_warning_from_string("harmless"), OnWarning::harmless);
  EXPECT_EQ(image::on_warning_from_string("accept"), OnWarning::accept);
  EXPECT_EQ(image::on_warning_from_string("reject"), OnWarning::reject);
  EXPECT_EQ(image::on_warning_from_string("ignore"), std::nullopt);
}

}  // namespace
}  // namespace shard::testing
