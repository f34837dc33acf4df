// MD5 and SHA-256: the values of their standards, and the same for bytes that come in pieces.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/digest/digests.hpp"

namespace shard {
namespace {

std::string md5_of(std::string_view text) { return to_hex(md5(as_byte_span(text))); }

TEST(Md5, HasTheValuesOfRfc1321) {
  EXPECT_EQ(md5_of(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(md5_of("abc"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(md5_of("12345678901234567890123456789012345678901234567890123456789012345678901234567890"),
            "57edf4a22be3c955ac49da2e2107b67a");
}

TEST(Md5, IsTheSameInPieces) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * 7);
  for (std::size_t piece = 1; piece < 200; ++piece) {
    Md5Stream stream;
    for (std::size_t at = 0; at < text.size(); at += piece)
      stream.update(as_byte_span(std::string_view(text).substr(at, piece)));
    ASSERT_EQ(to_hex(stream.digest()), md5_of(text)) << piece;
  }
}

TEST(Md5, InBase64) { EXPECT_EQ(to_base64(md5(as_byte_span("hello"))), "XUFAKrxLKna5cZ2REBfFkg=="); }

TEST(Sha256, HasTheValuesOfFips180) {
  const auto of = [](std::string_view text) { return sha256_hex(as_byte_span(text)); };
  EXPECT_EQ(of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(of(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace
}  // namespace shard
